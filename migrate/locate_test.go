package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func TestFailureNamesFileAndLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		file      string // the second one; the first makes table a (id int primary key)
		line      int
		state     string
		statement string
	}{
		{"syntax error", "create table b ();\ncreate tabel c ();\n", 2, "42601", "create tabel c ()"},
		{"syntax error on a statement's second line", "create table b\n(id int,,);", 2, "42601", "create table b\n(id int,,)"},
		{"blank lines and comments first", "\n\n-- one\n\n/* two\n */ select 1;\nselect nothing;\n", 7, "42703", "select nothing"},
		{"carriage returns", "\r\n-- one\r\nselect 1;\r\n\r\ncreate table a ();\r\n", 5, "42P07", "create table a ()"},
		{"characters of many bytes", "select 'ééé', '日本語', '🙂';\nselect\n  'é', nothing;", 3, "42703", "select\n  'é', nothing"},
		{"runtime error has no position", "insert into a values (1);\n\ninsert into a\n  values (1);\nselect 1;", 3, "23505", "insert into a\n  values (1)"},
		{"statements that look like more than they are", "select ';', $$ ; $$, $q$ ; $q$, e'\\';' /* ; /* ; */ */; -- ;\n;;\n" +
			"create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end;\n" +
			"create rule r as on delete to a do also (select 1; select 2);\ninsert into a values (null)", 5, "23502", "insert into a values (null)"},
		{"inside a DO block", "select 1;\ndo $$ begin\n  raise 'oh no';\nend $$", 2, "P0001", "do $$ begin\n  raise 'oh no';\nend $$"},
		{"at commit", "create table b (id int references a deferrable initially deferred);\ninsert into b values (7)", 0, "23503", "commit"},
		{"a quote left open", "create table b ();\nselect 'abc;\n", 2, "42601", ""},
		{"a comment left open", "create table b ();\n/* select 1;\n", 2, "42601", ""},
		{"a parenthesis left open", "create table b (id int;\n", 1, "42601", ""},
		{"a file cut off", "create table b (id int);\ncreate table c (\n id int\n\n", 3, "42601", ""},
		{"an upper part", "select 1;\nselect nothing;\n---- create above / drop below ----\nselect nothing", 2, "42703", "select nothing"},
	}
	b := setup(t, len(tests), 1)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := shards.Number(i)
			b := &bundle{t: t, m: b.m, cfg: b.cfg, conns: map[string]*pgx.Conn{}}
			b.cfg.Shards = shards.SetOf(n)
			b.cfg.Files = files("001_a.sql", "create table a (id int primary key);", "002_b.sql", test.file, "003_c.sql", "create table z ()")
			_, partial := b.upFails()
			var got *migrate.FileError
			if !errors.As(partial, &got) {
				t.Fatalf("got %v, want a FileError", partial)
			}
			equal(t, "file", got.File, "002_b.sql")
			equal(t, "line", got.Line, test.line)
			equal(t, "statement", got.Statement, test.statement)
			var pg *pgconn.PgError
			if !errors.As(got, &pg) || pg.Code != test.state {
				t.Errorf("got %v, want SQLSTATE %s", pg, test.state)
			}
			equal(t, "version", b.versions()[n], 1)
			equal(t, "tables", b.value(n, "select string_agg(tablename, ',' order by tablename) from pg_tables where schemaname = current_schema()"), "a,schema_version")
		})
	}
}

func TestFailureInRenderedText(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_a.sql", "\n{{range $i := until 3}}select {{$i}};\n{{end}}select {{.schema}};\n")
	_, partial := b.upFails()
	var got *migrate.FileError
	if !errors.As(partial, &got) {
		t.Fatalf("got %v, want a FileError", partial)
	}
	equal(t, "line", got.Line, 5)
	equal(t, "rendered", got.Rendered, true)
	equal(t, "error", partial.Error(), `0 of 1 shards done, 1 failed, 0 not attempted: shard 0 (shard_00000 on pg-a): `+
		`migration 001_a.sql, line 5 of its rendered text: column "shard_00000" does not exist (SQLSTATE 42703); in: select shard_00000`)
}

func TestFailureTellsDetailAndHint(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_a.sql", "create table a (id int primary key);\ninsert into a values (1);\ninsert into a values (1);\n"+strings.Repeat("select 1; ", 100))
	_, partial := b.upFails()
	equal(t, "error", partial.Failed[0].Error(), `shard 0 (shard_00000 on pg-a): migration 001_a.sql, line 3: `+
		`duplicate key value violates unique constraint "a_pkey" (SQLSTATE 23505); detail: Key (id)=(1) already exists.; in: insert into a values (1)`)
}

// Where Postgres refuses what a file does in a transaction, the error says how to run it.
func TestErrorsOfTransactionsSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	for wrong, want := range map[string]string{
		"create index concurrently on a (id)": `hint: mark the file "---- tern: disable-tx ----"`,
		"insert into b values ('y')":          "hint: put ALTER TYPE … ADD VALUE into a file of its own, before this one",
	} {
		b.cfg.Files = files("001_a.sql", "create table a (id int); create type m as enum ('x'); create table b (m m)", "002_b.sql", "alter type m add value 'y'; "+wrong)
		if _, partial := b.upFails(); !strings.Contains(partial.Error(), want) || !strings.Contains(partial.Error(), "in: "+wrong) {
			t.Errorf("%s: got %v", wrong, partial)
		}
	}
}
