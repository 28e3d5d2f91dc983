package router

import (
	"iter"
	"strings"
)

// traits are what can be told of SQL by its words. Where words do not tell, a trait is set on the safe side.
type traits struct {
	reads  bool // a SELECT, VALUES or TABLE by itself that locks no rows and makes no table
	calls  bool // begins with CALL or DO
	leaves bool // may leave something behind on the session: a setting, a lock, a temporary table, a cursor
	goesOn bool // goes on with a statement after one that ends a transaction
	listen bool // begins with LISTEN
	// It reads, and calls no functions but those that are known to change nothing, so that it may run twice.
	repeats bool
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

// ending are words with which a statement begins that ends a transaction. So does ROLLBACK without TO.
var ending = map[string]bool{"abort": true, "commit": true, "end": true}

// changing are words that a statement which only reads does not have, but within names and strings.
var changing = map[string]bool{"delete": true, "insert": true, "into": true, "merge": true, "share": true, "update": true}

func traitsOf(sql string) traits {
	var t traits
	statements, changes, ended := 0, false, false
	var opening, before string // the first word of the statement, and the word before this one
	for w := range words(sql) {
		switch {
		case w == ";":
			ended = ended || before == "rollback"
			opening, before = "", ""
			continue
		case opening == "":
			statements++
			t.goesOn = t.goesOn || ended
			ended = ended || ending[w]
			opening = w
			t.leaves = t.leaves || leavingFirst[w]
			t.listen = t.listen || w == "listen"
			t.calls = t.calls || w == "call" || w == "do"
			t.reads = w == "select" || w == "values" || w == "table" || w == "with"
		case before == "rollback" && opening == "rollback":
			ended = ended || w != "to"
		case before == "set" && opening == "set":
			t.leaves = t.leaves || w != "local" && w != "transaction" && w != "constraints"
		case w == "temp" || w == "temporary":
			t.leaves = t.leaves || opening == "create" || before == "into"
		}
		t.leaves = t.leaves || leaving[w]
		changes = changes || changing[w]
		before = w
	}
	t.reads = t.reads && statements == 1 && !changes && !t.leaves
	t.repeats = t.reads && callsKnown(sql)
	return t
}

// words yields the words of SQL in small letters, of quoted names what is between the quotes, and each semicolon. What
// is in comments and strings it leaves out.
func words(sql string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for sql != "" {
			var word string
			word, sql = nextWord(sql)
			if word != "" && !yield(word) {
				return
			}
		}
	}
}

// nextWord takes the next piece off SQL, and returns it if it is one that words yields.
func nextWord(sql string) (word, rest string) {
	c := sql[0]
	switch {
	case strings.HasPrefix(sql, "--"):
		_, rest, _ = strings.Cut(sql, "\n")
		return "", rest
	case strings.HasPrefix(sql, "/*"):
		return "", sql[commentEnd(sql):]
	case c == '\'':
		return "", sql[quoteEnd(sql, '\'', false):]
	case c == '"':
		end := quoteEnd(sql, '"', false)
		return strings.ToLower(strings.Trim(sql[:end], `"`)), sql[end:]
	case (c == 'e' || c == 'E') && len(sql) > 1 && sql[1] == '\'':
		return "", sql[1+quoteEnd(sql[1:], '\'', true):]
	case c == '$':
		return "", sql[dollarEnd(sql):]
	case c == ';':
		return ";", sql[1:]
	case !wordByte(c) || '0' <= c && c <= '9':
		return "", sql[1:]
	}
	end := 1
	for end < len(sql) && (wordByte(sql[end]) || sql[end] == '$') {
		end++
	}
	return strings.ToLower(sql[:end]), sql[end:]
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
}

// commentEnd returns where the comment ends with which SQL begins. Comments nest.
func commentEnd(sql string) int {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(sql)
}

// quoteEnd returns where the string or quoted name ends with which SQL begins. A doubled quote goes on as the next one.
func quoteEnd(sql string, quote byte, backslashes bool) int {
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && backslashes:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// dollarEnd returns where the dollar-quoted string ends with which SQL begins, or the $ of an argument.
func dollarEnd(sql string) int {
	end := 1
	for end < len(sql) && wordByte(sql[end]) {
		end++
	}
	if end == len(sql) || sql[end] != '$' || '0' <= sql[1] && sql[1] <= '9' {
		return end
	}
	tag := sql[:end+1]
	if at := strings.Index(sql[end+1:], tag); at >= 0 {
		return end + 1 + at + len(tag)
	}
	return len(sql)
}
