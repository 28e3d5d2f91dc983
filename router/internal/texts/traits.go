package texts

import (
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Traits are properties of SQL that its words show. A trait has the safe value if the words do not decide it.
type Traits struct {
	Reads  bool // a single SELECT, VALUES or TABLE that locks no rows, creates no table and calls only well-known functions
	Calls  bool // starts with CALL or DO
	Leaves bool // may leave something behind on the session: a setting, a lock, a temporary table, a cursor
	Listen bool // starts with LISTEN
	CopyIn bool // is a COPY FROM STDIN
}

// leaving are words that may leave something on a session, at any place in a statement.
var leaving = map[string]bool{
	"dblink_connect": true, "dblink_connect_u": true, "pg_advisory_lock": true, "pg_advisory_lock_shared": true, "pg_try_advisory_lock": true,
	"pg_try_advisory_lock_shared": true, "pg_settings": true, "search_path": true, "set_config": true,
}

// beforeTemp are words behind which TEMP begins the kind of what is made, and is no name.
var beforeTemp = map[string]bool{"create": true, "global": true, "into": true, "local": true, "replace": true}

// leavingFirst are words that may leave something on a session if a statement starts with them.
var leavingFirst = map[string]bool{
	"begin": true, "call": true, "declare": true, "discard": true, "do": true, "listen": true, "load": true,
	"prepare": true, "reset": true, "start": true,
}

// changing are words that do not occur in a statement that only reads, except in names and strings.
var changing = map[string]bool{"delete": true, "insert": true, "into": true, "merge": true, "share": true, "update": true}

func traitsOf(sql string) Traits {
	var t Traits
	statements, changes, known := 0, false, true
	var opening, before string // the first word of the statement, and the word before this one
	var calls callScan
	for token := range sqltext.Tokens(sql) {
		known = calls.known(token) && known
		w := wordOf(token)
		switch {
		case w == "":
			continue
		case w == ";":
			opening, before = "", ""
			continue
		case opening == "":
			statements++
			opening = w
			t.Leaves = t.Leaves || leavingFirst[w]
			t.Listen = t.Listen || w == "listen"
			t.Calls = t.Calls || w == "call" || w == "do"
			t.Reads = w == "select" || w == "values" || w == "table" || w == "with"
		case before == "set" && opening == "set":
			t.Leaves = t.Leaves || w != "local" && w != "transaction" && w != "constraints"
		case w == "stdin" && opening == "copy":
			t.CopyIn = t.CopyIn || before == "from"
		case w == "temp" || w == "temporary":
			t.Leaves = t.Leaves || beforeTemp[before]
		}
		t.Leaves = t.Leaves || leaving[w] || strings.HasPrefix(w, "pg_temp")
		changes = changes || changing[w]
		before = w
	}
	t.Reads = t.Reads && statements == 1 && !changes && !t.Leaves && known
	return t
}

// wordOf returns a word or a quoted name in lower case and without quotes, ";" for a semicolon, and "" for any other token.
func wordOf(t sqltext.Token) string {
	switch {
	case t.Kind == sqltext.Word:
		return sqltext.Fold(t.Text)
	case t.Kind == sqltext.Name:
		return strings.ToLower(t.Name())
	case t.Is(";"):
		return ";"
	}
	return ""
}

// Words returns the words and names of SQL, each once, in the case in which the server would look them up.
func Words(sql string) (all []string) {
	seen := map[string]bool{}
	for token := range sqltext.Tokens(sql) {
		w := ""
		switch token.Kind {
		case sqltext.Word:
			w = sqltext.Fold(token.Text)
		case sqltext.Name:
			w = token.Name()
		}
		if w != "" && !seen[w] {
			seen[w] = true
			all = append(all, w)
		}
	}
	return all
}

// FirstWord returns the first word of SQL in lower case. It skips white space, comments and semicolons.
func FirstWord(sql string) string {
	for token := range sqltext.Tokens(sql) {
		if w := wordOf(token); w != "" && w != ";" {
			return w
		}
	}
	return ""
}
