package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// errNotSure says that a file's statements could not be separated.
var errNotSure = errors.New("it is not clear where its statements end")

// onlyStructure returns nil for files that change nothing but the structure of the shard's schema, so that a shard that
// has it needs none of them. Otherwise it returns a [FileError] about the first statement that may do more: one that may
// write rows or set a sequence, that changes owners or privileges, or that is about something outside the schema. It
// judges a statement by how it begins, and treats a statement it does not know as unsafe.
func onlyStructure(files []file) error {
	for _, f := range files {
		if !f.sure {
			return &FileError{File: f.name, Err: errNotSure}
		}
		for _, s := range f.statements {
			if what := s.beyondStructure(s.in(f.sql)); what != "" {
				return f.wrong(s.Start, s.in(f.sql), fmt.Errorf("%s, which is not part of a structure", what))
			}
		}
	}
	return nil
}

var (
	// What stands between CREATE, ALTER or DROP and the kind of what is created.
	betweenWords = []string{"or", "replace", "unique", "unlogged", "constraint", "recursive", "materialized"}

	structureKinds = []string{
		"table", "index", "view", "sequence", "function", "procedure", "routine", "trigger", "type", "domain", "policy", "rule", "statistics",
	}

	harmlessSettings = []string{"lock_timeout", "statement_timeout", "client_min_messages", "check_function_bodies", "maintenance_work_mem"}

	ownerPattern   = regexp.MustCompile(`(?i)\bowner\s+to\b`)
	restartPattern = regexp.MustCompile(`(?i)\brestart\b`)
	fillPattern    = regexp.MustCompile(`(?i)\bas\b[\s(]*(select|with|table|values|execute)\b`) // CREATE TABLE … AS
)

// beyondStructure returns what a statement does or may do that is not the structure of a schema, or an empty text.
func (s statement) beyondStructure(text string) string {
	if len(s.Words) == 0 {
		return "it may do anything"
	}
	switch first := s.Words[0]; first {
	case "create", "alter", "drop":
		rest := s.Words[1:]
		for len(rest) > 0 && slices.Contains(betweenWords, rest[0]) {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 || !slices.Contains(structureKinds, rest[0]):
			return "it does more than change a schema's structure"
		case first == "alter" && ownerPattern.MatchString(text):
			return "it sets an owner"
		case first == "alter" && restartPattern.MatchString(text):
			return "it may set a sequence"
		case first == "create" && rest[0] == "table" && fillPattern.MatchString(text):
			return "it may write rows"
		}
		return ""
	case "comment":
		return ""
	case "set":
		if slices.ContainsFunc(s.Words, func(word string) bool { return slices.Contains(harmlessSettings, word) }) {
			return ""
		}
		return "it changes a setting"
	case "insert", "update", "delete", "merge", "truncate", "copy", "select", "with", "values", "table", "do", "call", "execute", "refresh":
		return strings.ToUpper(first) + " may write rows"
	case "grant", "revoke", "reassign", "security":
		return strings.ToUpper(first) + " changes privileges"
	default:
		return strings.ToUpper(first) + " does more than change a schema's structure"
	}
}
