package sqltext_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/wasilibs/go-pgquery/parser"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// snippets are what decides where a token ends, and what does not.
var snippets = []string{
	"'", "''", `"`, `""`, "$", "$$", "$a$", "$é$", "$1", "e'", "E'", "b'", "X'", "n'", "U&'", `u&"`, `\`, `\'`, "--", "/*", "*/", "*", "/", "-",
	"\n", "\r", " ", "\t", "\f", "a", "é", "E", "u&", "1", ".5", "1e5", ";", "(", ")", ",", ".",
}

// TestScansAsPostgresDoes compares the tokens with those of Postgres's own scanner, as far as that takes the text.
func TestScansAsPostgresDoes(t *testing.T) {
	t.Parallel()
	compared := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(snippets), 1, 16).Draw(rt, "text"), "")
		if compareScan(rt, text) {
			compared++
		}
	})
	if compared == 0 {
		t.Error("Postgres's scanner took no text")
	}
}

func FuzzScan(f *testing.F) {
	for _, sql := range []string{"select 'a;', e'\\';', $a$;$a$ /* ; */; -- x\nselect U&\"b\"", "'a'\n'b' /* /* */ */ $1 1.5e3"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) { compareScan(t, sql) })
}

// compareScan compares the tokens of a text, and reports whether it could.
func compareScan(t interface{ Fatalf(string, ...any) }, text string) bool {
	if strings.Contains(text, "\x00") {
		return false
	}
	scanned, err := parser.ScanToProtobuf(text)
	if err != nil {
		open := false
		for token := range sqltext.Tokens(text) {
			open = open || token.Open
		}
		if strings.HasPrefix(err.Error(), "unterminated") && !open {
			t.Fatalf("%q: no token is open; Postgres: %v", text, err)
		}
		return false
	}
	for token := range sqltext.Tokens(text) {
		if token.Kind == sqltext.String && strings.Contains(token.Text, "--") {
			return false // this build of the scanner, unlike the server's, does not let a string go on past a comment
		}
	}
	theirs := spans(scanned)
	for token := range sqltext.Tokens(text) {
		if token.Open {
			t.Fatalf("%q: %q is open", text, token.Text)
		}
		for len(theirs) > 0 && (comment(text, theirs[0]) || theirs[0].end <= token.Start) {
			theirs = theirs[1:]
		}
		if len(theirs) == 0 {
			t.Fatalf("%q: Postgres has no %q at %d", text, token.Text, token.Start)
		}
		span := theirs[0]
		if within := token.Kind == sqltext.Symbol && span.start <= token.Start && token.End() <= span.end; !within && (span.start != token.Start || span.end != token.End()) {
			t.Fatalf("%q: got %q at %d; Postgres has %q at %d", text, token.Text, token.Start, text[span.start:span.end], span.start)
		}
	}
	for _, span := range theirs[min(1, len(theirs)):] {
		if !comment(text, span) {
			t.Fatalf("%q: got nothing; Postgres has %q at %d", text, text[span.start:span.end], span.start)
		}
	}
	return true
}

type span struct{ start, end int }

func comment(text string, s span) bool {
	return strings.HasPrefix(text[s.start:s.end], "--") || strings.HasPrefix(text[s.start:s.end], "/*")
}

// spans returns where tokens are, from pg_query's ScanResult: field 2 is a token, whose fields 1 and 2 are its bounds.
func spans(scanned []byte) (all []span) {
	for field, message := range fields(scanned) {
		if field != 2 {
			continue
		}
		var s span
		for field, value := range numbers(message) {
			switch field {
			case 1:
				s.start = int(value)
			case 2:
				s.end = int(value)
			}
		}
		all = append(all, s)
	}
	return all
}

// fields yields the messages in a protobuf message.
func fields(message []byte) func(func(uint64, []byte) bool) {
	return func(yield func(uint64, []byte) bool) {
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			message = message[n:]
			size, n := binary.Uvarint(message)
			message = message[n:]
			if tag&7 != 2 {
				continue // a number
			}
			if !yield(tag>>3, message[:size]) {
				return
			}
			message = message[size:]
		}
	}
}

// numbers yields the numbers in a protobuf message that has only such.
func numbers(message []byte) func(func(uint64, uint64) bool) {
	return func(yield func(uint64, uint64) bool) {
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			message = message[n:]
			value, n := binary.Uvarint(message)
			message = message[n:]
			if !yield(tag>>3, value) {
				return
			}
		}
	}
}
