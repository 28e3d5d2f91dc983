package migrate

import (
	"slices"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// statement is one SQL statement of a file.
type statement struct{ sqltext.Statement }

// split returns the statements of a text, and false if their ends are uncertain. See [sqltext.Split].
func split(sql string) ([]statement, bool) {
	found, sure := sqltext.Split(sql)
	statements := make([]statement, len(found))
	for i, s := range found {
		statements[i] = statement{s}
	}
	return statements, sure
}

// in returns the text of the statement within its SQL text.
func (s statement) in(sql string) string { return sql[s.Start:s.End] }

// controlsTransaction reports whether the statement begins or ends a transaction. Commands of savepoints do not.
func (s statement) controlsTransaction() bool {
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

// setsSession reports whether the statement is a SET or RESET. It does not detect other changes of a session, such as a
// temporary table.
func (s statement) setsSession() bool { return s.StartsWith("set") || s.StartsWith("reset") }

// concernsServer reports whether the statement is one about databases, tablespaces, subscriptions or the server that cannot
// run in a transaction: only these commit before [file] is checked for changes outside its shard.
func (s statement) concernsServer() bool {
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
func (s statement) readsStdin(sql string) bool {
	if !s.StartsWith("copy") {
		return false
	}
	depth := 0
	var before sqltext.Token
	for t := range sqltext.Tokens(s.in(sql)) {
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
