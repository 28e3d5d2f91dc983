package sqltext_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// split returns the texts of the statements.
func split(sql string) ([]string, bool) {
	found, sure := sqltext.Split(sql)
	texts := make([]string, len(found))
	for i, s := range found {
		texts[i] = sql[s.Start:s.End]
	}
	return texts, sure
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sql  string
		want []string
		sure bool
	}{
		{"nothing", "", []string{}, true},
		{"blanks, comments and semicolons", " ;; -- a ; b\n; /* ; /* ; */ ; */ ;", []string{}, true},
		{"two", "select 1;\n select 2", []string{"select 1", "select 2"}, true},
		{"comment behind", "select 1 -- one\n; select 2 /* two */", []string{"select 1", "select 2"}, true},
		{"comment ended by a carriage return", "select 1 -- a\r; select 2", []string{"select 1", "select 2"}, true},
		{"quotes", `select 'a;''b', ";""x"; select '\'; select 3`, []string{`select 'a;''b', ";""x"`, `select '\'`, "select 3"}, true},
		{"escape strings", `select e'\';', E'\\'; select 2`, []string{`select e'\';', E'\\'`, "select 2"}, true},
		{"escape string that goes on", "select e'a' -- b\n  '\\';'; select 2", []string{"select e'a' -- b\n  '\\';'", "select 2"}, true},
		{"two escape strings", `select e'a', '\'; select 2`, []string{`select e'a', '\'`, "select 2"}, true},
		{"a word that ends in e", `select date'\'; select 2`, []string{`select date'\'`, "select 2"}, true},
		{"dollar quotes", "select $$;$$, $a$;$$;$b$;$a$; select 2", []string{"select $$;$$, $a$;$$;$b$;$a$", "select 2"}, true},
		{"dollars that are no quotes", "select $1; select a$b$ from c; select 3$b$", []string{"select $1", "select a$b$ from c", "select 3$b$"}, false},
		{"dollar tag beyond ASCII", "select $é$;$é$; select 2", []string{"select $é$;$é$", "select 2"}, true},
		{"rule", "create rule r as on insert to a do (select 1; select 2); select 3", []string{"create rule r as on insert to a do (select 1; select 2)", "select 3"}, true},
		{
			"atomic body", "create function f() returns int begin atomic select case when true then 1 end as end, t.end, t.case; return 1; end; select 2",
			[]string{"create function f() returns int begin atomic select case when true then 1 end as end, t.end, t.case; return 1; end", "select 2"},
			true,
		},
		{"atomic procedure", "create or replace procedure p() begin atomic; end; select 2", []string{"create or replace procedure p() begin atomic; end", "select 2"}, true},
		{"begin", "begin; end", []string{"begin", "end"}, true},
		{"begin without a routine", "begin atomic; end", []string{"begin atomic", "end"}, true},
		{"open quote", "select 1; select 'a;", []string{"select 1", "select 'a;"}, false},
		{"open name", `select "a;`, []string{`select "a;`}, false},
		{"open escape string", `select e'a\'`, []string{`select e'a\'`}, false},
		{"open dollar quote", "select $a$;$b$", []string{"select $a$;$b$"}, false},
		{"open comment", "select 1; /* /* */;", []string{"select 1", "/* /* */;"}, false},
		{"open parenthesis", "select (1; select 2", []string{"select (1; select 2"}, false},
		{"closed once too often", "select 1); select 2", []string{"select 1)", "select 2"}, false},
		{"open body", "create function f() begin atomic select 1; select 2", []string{"create function f() begin atomic select 1; select 2"}, false},
	}
	for _, test := range tests {
		got, sure := split(test.sql)
		if !slices.Equal(got, test.want) || sure != test.sure {
			t.Errorf("%s: got %q, %v, want %q, %v", test.name, got, sure, test.want, test.sure)
		}
	}
}

// statements makes valid statements, with semicolons where they do not end one.
func statements() *rapid.Generator[string] {
	values := rapid.SampledFrom([]string{
		"1", "';'", "'a'';''b'", `'\'`, `e'\';'`, `E'\\'`, `"n;"`, `"n"`, "$$;$$", "$a$;'$$;$a$", "$é$ ; $é$", "(select ';')", "case when true then ';' end",
		"e'a'\n  '\\';'", "e'a' -- ;'\n  ';'", "U&'\\0061;'", "B'1'", "x'1F'", "1.5e3", "date '2026-01-01'", "'é;🙂'", "1 /* ; ' */", "2 -- ; '\n", "array[';']", "4-(-3)", "5*/**/6",
	})
	selects := rapid.Custom(func(t *rapid.T) string {
		list := strings.Join(rapid.SliceOfN(values, 1, 4).Draw(t, "values"), ", ")
		return "select " + list + " from (values (1, 2)) v(\"n\", \"n;\")"
	})
	other := rapid.SampledFrom([]string{
		"create or replace function pg_temp.f() returns int language sql begin atomic select case when true then 1 end; select 2; end",
		"do $do$ begin perform 1; end $do$", "savepoint s; rollback to s; release s", "set local work_mem = '1MB'",
		"create temp table if not exists t (id int); drop table t", "copy (select 1) to stdout", "explain select 1",
	})
	return rapid.OneOf(selects, other)
}

// Postgres itself says how many statements there are.
func TestSplitCountsAsPostgresDoes(t *testing.T) {
	t.Parallel()
	session, err := pgx.Connect(t.Context(), shardtest.Hosts(t, 1)[0].DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	conn := session.PgConn()
	gaps := rapid.SampledFrom([]string{";", " ;\n", ";;", "; -- ;\n", ";/* ; /* ' */ */", "\r\n;\r\n", ";\t;"})
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		for _, statement := range rapid.SliceOfN(statements(), 0, 8).Draw(rt, "statements") {
			text.WriteString(statement + gaps.Draw(rt, "gap"))
		}
		got, sure := split(text.String())
		if !sure {
			rt.Fatalf("%q: not sure", text.String())
		}
		results, err := conn.Exec(t.Context(), "begin;"+text.String()+"\n;rollback").ReadAll()
		if err != nil {
			rt.Fatalf("%q: %v", text.String(), err)
		}
		if len(got) != len(results)-2 {
			rt.Fatalf("%q: got %d statements %q, Postgres counts %d", text.String(), len(got), got, len(results)-2)
		}
	})
}

// Before and Semicolon are the bounds of the text that belongs to a statement.
func TestSplitKeepsComments(t *testing.T) {
	t.Parallel()
	text := " ;; /* one; */ select 1 -- a;\n; select 2; -- rest"
	found, _ := sqltext.Split(text)
	var got []string
	for _, s := range found {
		got = append(got, text[s.Before:s.Semicolon])
	}
	if want := []string{" /* one; */ select 1 -- a;\n", " select 2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"select 1; select 2", "select 'a;', e'\\';', $a$;$a$ /* ; */; -- x\nselect 2", "create function f() begin atomic select 1; end;", "copy a from stdin"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		got, sure := split(sql)
		rest := sql
		for _, statement := range got {
			if statement == "" {
				t.Fatalf("%q: an empty statement in %q", sql, got)
			}
			at := strings.Index(rest, statement)
			if at < 0 {
				t.Fatalf("%q: %q out of order in %q", sql, statement, got)
			}
			rest = rest[at+len(statement):]
			if !sure {
				continue
			}
			if again, sure := split(statement); !sure || len(again) != 1 || again[0] != statement {
				t.Fatalf("%q: split again, %q is %q", sql, statement, again)
			}
		}
	})
}
