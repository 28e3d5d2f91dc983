package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// errNotSure says that a file's statements could not be separated.
var errNotSure = errors.New("it is not clear where its statements end")

// onlyStructure returns nil if files change only the structure of the shard's schema, so that a copy of the structure can
// replace them. Otherwise it returns a [FileError] for the first statement that may do more: write rows, set a sequence,
// change owners or privileges, or change something outside the schema. It judges a statement by its first words, and
// treats an unknown statement as unsafe.
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
	// Words between CREATE, ALTER or DROP and the kind of object.
	betweenWords = []string{"or", "replace", "unique", "unlogged", "constraint", "recursive", "materialized"}

	structureKinds = []string{
		"table", "index", "view", "sequence", "function", "procedure", "routine", "trigger", "type", "domain", "policy", "rule", "statistics",
	}

	harmlessSettings = []string{"lock_timeout", "statement_timeout", "client_min_messages", "check_function_bodies", "maintenance_work_mem"}

	queryWords = []string{"select", "with", "table", "values", "execute"}
)

// hasWord reports whether a statement has a word that one of next follows, with at most parentheses between; without next,
// whether it has the word.
func hasWord(text, word string, next ...string) bool {
	found := false
	for t := range sqltext.Tokens(text) {
		switch {
		case t.Is(word) && len(next) == 0, found && slices.ContainsFunc(next, t.Is):
			return true
		case !t.Is("("):
			found = t.Is(word)
		}
	}
	return false
}

// beyondStructure describes what a statement may do beyond changing the structure of a schema; empty for nothing.
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
		case first == "alter" && hasWord(text, "owner", "to"):
			return "it sets an owner"
		case first == "alter" && hasWord(text, "restart"):
			return "it may set a sequence"
		case first == "create" && rest[0] == "table" && hasWord(text, "as", queryWords...):
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
