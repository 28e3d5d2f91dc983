package query

import (
	"strings"
	"testing"
)

// An audit line has what SQL does, and none of its values.
func TestShownSQL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, sql, want string }{
		{"words", "select  count(*)\n\tfrom photos", "select count(*) from photos"},
		{"values", "insert into users values (12, 'alice', E'a\\'b', $$x$$, 0x1F) -- hunter2", "insert into users values (…, …, …, …, …)"},
		{"comments", "delete /* hunter2 */ from users;-- hunter2\nvacuum", "delete from users; vacuum"},
		{"names", `update "Users" set "a b" = $1`, `update "Users" set "a b" = $1`},
		{"a string that goes on", "select 'hunter'\n'2' as a", "select … as a"},
		{"a password", `alter role app PASSWORD "hunter2" login`, "alter role app PASSWORD …"},
		{"a string without its end", "select 1, 'hunter2", "select …, …"},
		{"a backslash, which may hide the end", `select a, 'x\' hunter2 '`, "select a, …"},
		{"a comment without its end", "select a /* hunter2", "select a …"},
		{"nothing", " -- hunter2", ""},
	} {
		if got := shownSQL(test.sql); got != test.want {
			t.Errorf("%s: got %q, expected %q", test.name, got, test.want)
		}
	}
	if got := shownSQL(strings.Repeat("select a; ", 10_000)); len(got) > mostShown+20 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long text: got %d bytes", len(got))
	}
	if got := shownSQL("select " + strings.Repeat("a", 10_000)); len(got) > mostShown+20 {
		t.Errorf("a long word: got %d bytes", len(got))
	}
}

func TestShownOptions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ arguments, want string }{
		{"-X|-c|alter role app password 'hunter2'", "-- -X -c"},
		{"-cselect 'hunter2'|--command=hunter2|-v|a=hunter2|postgres://app:hunter2@10.0.0.1/app", "-- -c --command -v"},
		{"-c|-- hunter2|", "-- -c"},
	} {
		if got := strings.Join(shownOptions(strings.Split(test.arguments, "|")), " "); got != test.want {
			t.Errorf("%s: got %q, expected %q", test.arguments, got, test.want)
		}
	}
	if got := shownOptions(nil); got != nil {
		t.Errorf("no arguments: got %q", got)
	}
}
