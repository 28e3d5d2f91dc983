package texts

import (
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Traits are what the words of SQL show. Where they show nothing, a trait has the safe value.
type Traits struct {
	Reads  bool // a SELECT, VALUES or TABLE by itself that locks no rows, makes no table and calls no function but well-known ones
	Calls  bool // begins with CALL or DO
	Leaves bool // may leave something behind on the session: a setting, a lock, a temporary table, a cursor
	Listen bool // begins with LISTEN
}

// leaving are words that, wherever they stand, may leave something on a session.
var leaving = map[string]bool{
	"dblink_connect": true, "pg_advisory_lock": true, "pg_advisory_lock_shared": true, "pg_try_advisory_lock": true,
	"pg_try_advisory_lock_shared": true, "search_path": true, "set_config": true,
}

// leavingFirst are words that may leave something when a statement begins with them.
var leavingFirst = map[string]bool{
	"begin": true, "call": true, "declare": true, "discard": true, "do": true, "listen": true, "load": true,
	"prepare": true, "reset": true, "start": true,
}

// changing are words that a statement which only reads does not have outside of names and strings.
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
		case w == "temp" || w == "temporary":
			t.Leaves = t.Leaves || opening == "create" || before == "into"
		}
		t.Leaves = t.Leaves || leaving[w]
		changes = changes || changing[w]
		before = w
	}
	t.Reads = t.Reads && statements == 1 && !changes && !t.Leaves && known
	return t
}

// wordOf returns a word in lower case, a quoted name without its quotes, a semicolon, and "" for any other token.
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

// FirstWord returns the first word of SQL in lower case, after white space, comments and semicolons.
func FirstWord(sql string) string {
	for token := range sqltext.Tokens(sql) {
		if w := wordOf(token); w != "" && w != ";" {
			return w
		}
	}
	return ""
}
