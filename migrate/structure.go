package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// errNotSure says that a file's statements could not be told apart.
var errNotSure = errors.New("it is not clear where its statements end")

// onlyStructure returns nil for files that change nothing but the structure of the shard's schema, so that a shard that
// has it needs none of them. Otherwise it returns a [FileError] about the first statement that may do more: one that may
// write rows or set a sequence, that changes owners or privileges, or that is about something outside the schema. It
// judges a statement by how it begins, and takes none for harmless that it does not know.
func onlyStructure(files []file) error {
	for _, f := range files {
		if !f.sure {
			return &FileError{File: f.name, Err: errNotSure}
		}
		for _, s := range f.statements {
			if what := s.beyondStructure(f.sql[s.start:s.end]); what != "" {
				return f.wrong(s.start, f.sql[s.start:s.end], fmt.Errorf("%s, which no structure tells", what))
			}
		}
	}
	return nil
}

var (
	// What stands between CREATE, ALTER or DROP and the kind of what is created.
	betweenWords = []string{"OR", "REPLACE", "UNIQUE", "UNLOGGED", "CONSTRAINT", "RECURSIVE", "MATERIALIZED"}

	structureKinds = []string{
		"TABLE", "INDEX", "VIEW", "SEQUENCE", "FUNCTION", "PROCEDURE", "ROUTINE", "TRIGGER", "TYPE", "DOMAIN", "POLICY", "RULE", "STATISTICS",
	}

	harmlessSettings = []string{"LOCK_TIMEOUT", "STATEMENT_TIMEOUT", "CLIENT_MIN_MESSAGES", "CHECK_FUNCTION_BODIES", "MAINTENANCE_WORK_MEM"}

	ownerPattern   = regexp.MustCompile(`(?i)\bowner\s+to\b`)
	restartPattern = regexp.MustCompile(`(?i)\brestart\b`)
	fillPattern    = regexp.MustCompile(`(?i)\bas\b[\s(]*(select|with|table|values|execute)\b`) // CREATE TABLE … AS
)

// beyondStructure returns what a statement does or may do that is not the structure of a schema, or an empty text.
func (s statement) beyondStructure(text string) string {
	if len(s.words) == 0 {
		return "it may do anything"
	}
	switch first := s.words[0]; first {
	case "CREATE", "ALTER", "DROP":
		rest := s.words[1:]
		for len(rest) > 0 && slices.Contains(betweenWords, rest[0]) {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 || !slices.Contains(structureKinds, rest[0]):
			return "it does more than change a schema's structure"
		case first == "ALTER" && ownerPattern.MatchString(text):
			return "it sets an owner"
		case first == "ALTER" && restartPattern.MatchString(text):
			return "it may set a sequence"
		case first == "CREATE" && rest[0] == "TABLE" && fillPattern.MatchString(text):
			return "it may write rows"
		}
		return ""
	case "COMMENT":
		return ""
	case "SET":
		if slices.ContainsFunc(s.words, func(word string) bool { return slices.Contains(harmlessSettings, word) }) {
			return ""
		}
		return "it changes a setting"
	case "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "SELECT", "WITH", "VALUES", "TABLE", "DO", "CALL", "EXECUTE", "REFRESH":
		return first + " may write rows"
	case "GRANT", "REVOKE", "REASSIGN", "SECURITY":
		return first + " changes privileges"
	default:
		return first + " does more than change a schema's structure"
	}
}
