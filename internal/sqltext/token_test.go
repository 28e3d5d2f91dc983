package sqltext_test

import (
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		sql  string
		want []string
	}{
		{"nothing", " \t\r\n-- a\n/* b /* c */ d */", nil},
		{"words", "select Größe, a$b$ from _x1", []string{"select", "Größe", ",", "a$b$", "from", "_x1"}},
		{"comments that nest", "a /* /* */ ; */ b", []string{"a", "b"}},
		{"a comment ends at once", "a /**/ b /*/*/ */ c */ d", []string{"a", "b", "d"}},
		{"a comment within an operator", "5*/**/6--7\n+/*x*/-8", []string{"5", "*", "6", "+", "-", "8"}},
		{"a comment that a carriage return ends", "a -- b\rc", []string{"a", "c"}},
		{"strings", `'a''b' 'c\' n'd\' b'01' X'1F'`, []string{`'a''b'`, `'c\'`, `n`, `'d\'`, `b'01'`, `X'1F'`}},
		{"escape strings", `e'\'' E'\\' e''''`, []string{`e'\''`, `E'\\'`, `e''''`}},
		{"a word that ends in e", `date'\' 1`, []string{"date", `'\'`, "1"}},
		{"a string that goes on", "'a' -- ; b\n  'c' 'd'", []string{"'a' -- ; b\n  'c'", "'d'"}},
		{"escapes go on with the string", "e'a'\n'\\';' 1", []string{"e'a'\n'\\';'", "1"}},
		{"a string in the same line", "e'a' '\\' 1", []string{"e'a'", `'\'`, "1"}},
		{"names", `"a""b;" U&"c""\0061" u&'d\' u & "e"`, []string{`"a""b;"`, `U&"c""\0061"`, `u&'d\'`, "u", "&", `"e"`}},
		{"dollar quotes", "$$;'$$ $a$;$$;$b$;$a$ $é1$;$é1$", []string{"$$;'$$", "$a$;$$;$b$;$a$", "$é1$;$é1$"}},
		{"dollars that are no quotes", "$1 $12, $1$$;$$ $a b$c$d", []string{"$1", "$12", ",", "$1", "$$;$$", "$", "a", "b$c$d"}},
		{"numbers", "1 1.5e-3 .5 0x1F 1_000 1$$;$$ a.1", []string{"1", "1.5e-3", ".5", "0x1F", "1_000", "1", "$$;$$", "a", ".1"}},
		{"ranges", "1..2", []string{"1", "..", "2"}},
		{"open string", "a 'b;", []string{"a", "'b;"}},
		{"open escape string", `e'\'`, []string{`e'\'`}},
		{"open name", `a "b;`, []string{"a", `"b;`}},
		{"open dollar quote", "$a$;$b$", []string{"$a$;$b$"}},
		{"open comment", "a /* /* */ ;", []string{"a", "/* /* */ ;"}},
	} {
		var got []string
		for token := range sqltext.Tokens(test.sql) {
			got = append(got, token.Text)
			if test.sql[token.Start:token.End()] != token.Text {
				t.Errorf("%s: %q is not at %d", test.name, token.Text, token.Start)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// With standard_conforming_strings off a backslash escapes in plain strings too, and in no other.
func TestEscapes(t *testing.T) {
	t.Parallel()
	s := sqltext.Scanner{Text: `'\'' n'\'' "\" b'1' $$\$$ 'a'` + "\n" + `'\''`, Escapes: true}
	var got []string
	for token, ok := s.Next(); ok; token, ok = s.Next() {
		got = append(got, token.Text)
	}
	if want := []string{`'\''`, `n`, `'\''`, `"\"`, `b'1'`, `$$\$$`, "'a'\n" + `'\''`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sql, want string }{
		{"Photos", "photos"},
		{"GRÖSSE", "grÖsse"}, // as Postgres does in UTF-8
		{`"Photos"`, "Photos"},
		{`"a""b"`, `a"b`},
		{`U&"\0061"`, ""},
		{`"a`, ""},
		{"'a'", ""},
		{"$1", ""},
	} {
		for token := range sqltext.Tokens(test.sql) {
			if got := token.Name(); got != test.want {
				t.Errorf("%s: got %q, want %q", test.sql, got, test.want)
			}
		}
	}
}
