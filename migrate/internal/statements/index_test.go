package statements

import (
	"strings"
	"testing"
)

func TestStatementsThatBuildIndexes(t *testing.T) {
	t.Parallel()
	tests := []struct{ sql, want string }{
		{"create index concurrently a on t (x)", "CREATE a on t"},
		{"Create Unique Index Concurrently If Not Exists A ON only S.T using btree (x)", "CREATE a on s|t"},
		{`create index /* on */ concurrently "A ""b" -- x` + "\n" + `on "S"."t u"(x)`, `CREATE A "b on S|t u`},
		{"create index concurrently on t(x)", "CREATE  on t"},
		{"create index concurrently größe on t(x)", "CREATE größe on t"},
		{`create index concurrently U&"a" on t(x)`, ""},
		{`create index concurrently a on u&"t" (x)`, ""},
		{"create index a on t (x)", ""},
		{"create table concurrently (x int)", ""},
		{"create index concurrently", ""},
		{"create index concurrently a", ""},
		{"create index concurrently a on s.", ""},
		{"drop index concurrently a", ""},
		{"reindex index concurrently a", "INDEX  on a"},
		{"reindex (verbose, concurrently) table s.t", "TABLE  on s|t"},
		{"reindex schema concurrently s", "SCHEMA  on s"},
		{"reindex table t", ""},
		{"reindex (concurrently", ""},
		{"select 'create index concurrently a on t'", ""},
		{"", ""},
	}
	for _, test := range tests {
		got := ""
		if found, ok := parseOnIndex(tokens(test.sql)); ok {
			got = found.kind + " " + found.index + " on " + strings.Join(found.on, "|")
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.sql, got, test.want)
		}
	}
}
