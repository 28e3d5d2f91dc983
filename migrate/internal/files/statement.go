package files

import (
	"slices"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Statement is one SQL statement of a file.
type Statement struct{ sqltext.Statement }

// split returns the statements of a text, and false if their ends are uncertain. See [sqltext.Split].
func split(sql string) ([]Statement, bool) {
	found, sure := sqltext.Split(sql)
	statements := make([]Statement, len(found))
	for i, s := range found {
		statements[i] = Statement{s}
	}
	return statements, sure
}

// In returns the text of the statement within its SQL text.
func (s Statement) In(sql string) string { return sql[s.Start:s.End] }

// controlsTransaction reports whether the statement begins or ends a transaction. Commands of savepoints do not.
func (s Statement) controlsTransaction() bool {
	if len(s.Words) == 0 {
		return false
	}
	switch s.Words[0] {
	case "begin", "commit", "end", "abort":
		return true
	case "start", "prepare":
		return len(s.Words) > 1 && s.Words[1] == "transaction"
	case "rollback":
		return !slices.Contains(s.Words, "to")
	}
	return false
}

// SetsSession reports whether the statement is a SET or RESET. It does not detect other changes of a session, such as a
// temporary table.
func (s Statement) SetsSession() bool { return s.StartsWith("set") || s.StartsWith("reset") }

// concernsServer reports whether the statement is one about databases, tablespaces, subscriptions or the server that cannot
// run in a transaction: only these commit before a file is checked for changes outside its shard.
func (s Statement) concernsServer() bool {
	if len(s.Words) < 2 {
		return false
	}
	switch s.Words[1] {
	case "database", "tablespace", "subscription":
		return s.Words[0] == "create" || s.Words[0] == "drop" || s.Words[0] == "alter"
	case "system":
		return s.Words[0] == "alter"
	}
	return false
}

// readsStdin reports whether the statement is a COPY … FROM STDIN.
func (s Statement) readsStdin(sql string) bool {
	if !s.StartsWith("copy") {
		return false
	}
	depth := 0
	var before sqltext.Token
	for t := range sqltext.Tokens(s.In(sql)) {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0 && before.Is("from") && t.Is("stdin"):
			return true
		}
		before = t
	}
	return false
}
