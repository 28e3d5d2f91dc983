package lint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate/lint"
)

// found is the rules and lines of the warnings for a text: "create-index 2, truncate 3".
func found(t *testing.T, sql string, opts lint.Options) string {
	t.Helper()
	warnings, err := lint.Check(sql, opts)
	if err != nil {
		t.Errorf("%s: got error %v", sql, err)
	}
	parts := make([]string, len(warnings))
	for i, w := range warnings {
		parts[i] = fmt.Sprintf("%s %d", w.Rule, w.Line)
		if w.Kind == "" || w.Statement == "" || w.Effect == "" || w.Instead == "" || strings.Contains(w.Effect, "%") {
			t.Errorf("%s: something is missing in %+v", sql, w)
		}
	}
	return strings.Join(parts, ", ")
}

const (
	outside = "---- tern: disable-tx ----\n"
	ours    = "create table ours (id int primary key, name text);\n"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sql  string
		want string
	}{
		{
			"other schemas", "create table public.t (); alter table public.old add a int; create view app.v as select 1; create function public.f() returns int language sql as 'select 1'; " +
				"create type public.m as enum ('a'); drop function public.f(); insert into public.old values (1); grant select on public.old to x; create schema app",
			"leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1",
		},
		{"reads of other schemas", "create domain d as bigint; create domain e as public.citext; create view v as select * from public.old; create table t (a int references public.old, b public.citext default public.f()); insert into t select * from public.old", ""},
		{
			"parents", "create table a () inherits (old, public.b);\ncreate table c partition of public.d default;\ncreate table public.e partition of old default; create table g () inherits (old)",
			"leaves-shard 1, leaves-shard 2, leaves-shard 3",
		},
		{"of the server", "create role x; alter database d set work_mem = '1MB'; create event trigger e on ddl_command_end execute function ev(); do 'begin create role x; end'", "leaves-shard 1, leaves-shard 1, leaves-shard 1, leaves-shard 1"},
		{"extension", "create extension if not exists citext", "create-extension 1"},
		{"search_path", "select pg_catalog.set_config('search_path', '', false); set search_path = public", "search-path 1, search-path 1"},
		{
			"columns that cannot hold IDs", "create table users (id bigint primary key default next_id());\ncreate table p (id int default next_id());\ncreate table q (id bigint primary key default next_id('s'),\na real default shard_00001.next_id()::real,\nu int references users,\nq int references q)",
			"narrow-id 2, narrow-id 4, narrow-id 5, narrow-id 6",
		},
		{
			"columns that get IDs by keys", "create table p (id bigint default next_id(), n int unique, primary key (id));\ncreate table q (p bigint primary key references p,\nn int references p (n), m int, foreign key (m) references p);\n" +
				"alter table q add o smallint references p (id);\nalter table q alter n set default next_id()::int;\ncreate table r (a int,\nforeign key (a) references q (p))",
			"narrow-id 3, narrow-id 4, narrow-id 5, narrow-id 7",
		},
		{
			"columns that hold IDs", "create table users (id bigint primary key default next_id()); create table p (id numeric default next_id(), n int default 7, m int references old, b int default next_id() % 100, u bigint references users, a int[])", "",
		},
		{
			"an enum's new value", "insert into p values ('b');\nalter type m add value 'b' before 'c'; alter type m add value if not exists 'd';\ninsert into p values ('b');\ncreate table q (m m default 'd', n text default 'c');\n" +
				"update q set m = 'b' where n = 'x'", "enum-value 3, enum-value 4, enum-value 5",
		},
		{"an enum's new value, outside", outside + "alter type m add value 'b'; insert into p values ('b')", ""},
		{"an enum's value with another name", "alter type m rename value 'a' to 'b'; insert into p values ('b'); comment on type m is 'b'", ""},
		{
			"names in catalogs", "do $$ begin\nif not exists (select 1 from pg_type where typname = 'mood') then create type mood as enum ('a'); end if; end $$;\n" +
				"insert into t select column_name from information_schema.columns where table_name = 't';\ncreate function f() returns text language sql as 'select tablename from pg_tables limit 1'",
			"catalog-by-name 2, catalog-by-name 3, catalog-by-name 4",
		},
		{
			"names in catalogs, of the shard", "select 1 from pg_class where relname = 't' and relnamespace = current_schema()::regnamespace; select 1 from pg_constraint where conname = 'c' and conrelid = 't'::regclass;" +
				"select 1 from information_schema.tables where table_schema = current_schema() and table_name = 't'; select 1 from pg_proc where proname = 'f' and pg_function_is_visible(oid); select typname from t; select oid from pg_class", "",
		},
		{
			"what cannot move", "create table a (id int) partition by range (id);\ncreate table k of c;\ncreate table c () inherits (old);\ncreate aggregate g (int) (sfunc = int4pl, stype = int);\n" +
				"create foreign table f (id int) server s", "cannot-move 2, cannot-move 4, cannot-move 5",
		},
		{"what can move", "create table a (like old); create temporary table t () inherits (old); create type m as enum ('a'); create type r as range (subtype = int); create temporary table k of c", ""},
		{"harmless", "create table t (id int); select 1; insert into old values (1); comment on table old is 'x'", ""},
		{"nothing", " -- nothing\n", ""},

		{"index", "create index on old (id)", "create-index 1"},
		{"unique index", "\n\ncreate unique index if not exists i on old (id)", "create-index 3"},
		{"index on a new table", ours + "create index on ours (name); create unique index i on ours (id); drop index i; alter index i set tablespace x", ""},
		{"index on a table like a new one", ours + "create index on other.ours (name)", "create-index 2, leaves-shard 2"},
		{"index on a table that is made later", "create index on ours (name);\n" + ours, "create-index 1"},
		{"index, concurrently", outside + "create index concurrently i on old (id)", ""},
		{"index, concurrently, in a transaction", "create index concurrently i on old (id)", "not-in-transaction 1"},
		{"index, concurrently, with carriage returns", "---- tern: disable-tx ----\r\ncreate index concurrently i on old (id)", ""},
		{"drop index", "drop index i", "drop-index 1"},
		{"drop index, concurrently", outside + "drop index concurrently i", ""},
		{"drop index, concurrently, in a transaction", "drop index concurrently i", "not-in-transaction 1"},
		{"reindex", "reindex table old; reindex index i; reindex (concurrently false) table old", "reindex 1, reindex 1, reindex 1"},
		{"reindex a new table", ours + "reindex table ours", ""},
		{"reindex, concurrently", outside + "reindex table concurrently old; reindex (concurrently) index i", ""},
		{"reindex, concurrently, in a transaction", "reindex table concurrently old", "not-in-transaction 1"},
		{"reindex a schema", outside + "reindex schema public", "reindex 2"},

		{"type", "alter table old\n  alter a type bigint,\n  alter b type text", "alter-column-type 2, alter-column-type 3"},
		{"type in a new table", ours + "alter table ours alter name type varchar(9)", ""},
		{"type of a composite type's field", "alter type old alter attribute a type bigint", ""},
		{"column", "alter table old add a int, add b text default 'x' not null, add column c timestamptz not null default now()", ""},
		{"column with steady defaults", "alter table old add a text default lower('X') || current_user, add b timestamptz default current_timestamp, " +
			"add c timestamp default (now() at time zone 'utc'), add d jsonb default '{}'::jsonb, add e int[] default array[1, 2], add f date default pg_catalog.now()::date", ""},
		{"column with a volatile default", "alter table old\nadd a uuid default gen_random_uuid(),\nadd b float default 1 + random()", "add-column-volatile-default 2, add-column-volatile-default 3"},
		{"column with an ID", "alter table old add a bigint default next_id()", "add-column-volatile-default 1"},
		{"column with the clock", "alter table old add a timestamptz default clock_timestamp(), add b bigint default nextval('s')", "add-column-volatile-default 1, add-column-volatile-default 1"},
		{"column with an unknown function", "alter table old add a text default mine.now()", "add-column-volatile-default 1"},
		{"column with a volatile default in a new table", ours + "alter table ours add a uuid default gen_random_uuid()", ""},
		{"default that is set later", "alter table old add a uuid; alter table old alter a set default gen_random_uuid()", ""},
		{"serial column", "alter table old add a bigserial;\nalter table old add b serial not null", "add-column-serial 1, add-column-serial 2"},
		{"serial column of a new table", ours + "alter table ours add a bigserial", ""},
		{"identity column", "alter table old add a int generated by default as identity", "add-column-identity 1"},
		{"identity column of a new table", ours + "alter table ours add a int generated by default as identity", ""},
		{"stored column", "alter table old add a int generated always as (b + 1) stored", "add-column-stored 1"},
		{"stored column of a new table", ours + "alter table ours add a int generated always as (id + 1) stored", ""},
		{"expression", "alter table old alter a set expression as (b + 2)", "set-expression 1"},
		{"expression in a new table", ours + "alter table ours alter a set expression as (b + 2)", ""},
		{"column that is not null", "alter table old add a int not null", "add-column-not-null 1"},
		{"column that is not null, in a new table", ours + "alter table ours add a int not null", ""},
		{"column with constraints", "alter table old add a int check (a > 0) unique references ours", "add-check 1, add-unique 1"},
		{"column with a key and a default", "alter table old add a int default 1 references ours", "add-foreign-key 1"},

		{"check", "alter table old add constraint c check (a > 0)", "add-check 1"},
		{"check, not valid", "alter table old add constraint c check (a > 0) not valid", ""},
		{"foreign key", "alter table old add foreign key (a) references ours", "add-foreign-key 1"},
		{"foreign key, not valid", "alter table old add foreign key (a) references ours not valid", ""},
		{"foreign key of a new table", ours + "alter table ours add foreign key (id) references old", ""},
		{"validate", "alter table old validate constraint c", ""},
		{"validate at once", "alter table old add constraint c check (a > 0) not valid;\nalter table old validate constraint c", "validate-same-transaction 2"},
		{"validate, outside", outside + "alter table old add constraint c check (a > 0) not valid;\nalter table old validate constraint c", ""},
		{"primary key", "alter table old add primary key (id)", "add-primary-key 1"},
		{"primary key by an index", "alter table old add primary key using index i", ""},
		{"unique", "alter table old add unique (a)", "add-unique 1"},
		{"unique by an index", "alter table old add constraint u unique using index i", ""},
		{"exclude", "alter table old add exclude using gist (a with &&)", "add-exclude 1"},
		{"exclude in a new table", ours + "alter table ours add exclude using gist (name with &&)", ""},
		{"not null", "alter table old alter a set not null", "set-not-null 1"},
		{"not null in a new table", ours + "alter table ours alter name set not null", ""},
		{"null", "alter table old alter a drop not null", ""},

		{"tablespace", "alter table old set tablespace x; alter index i set tablespace x; alter table all in tablespace a set tablespace b", "set-tablespace 1, set-tablespace 1, set-tablespace 1"},
		{"tablespace of a new table", ours + "alter table ours set tablespace x", ""},
		{"logged", "alter table old set logged;\nalter table old set unlogged", "set-logged 1, set-logged 2"},
		{"logged, new", ours + "alter table ours set unlogged", ""},
		{"access method", "alter table old set access method heap", "set-access-method 1"},
		{"access method of a new table", ours + "alter table ours set access method heap", ""},
		{"storage parameters", "alter table old set (fillfactor = 70)", ""},
		{"vacuum full", outside + "vacuum full old; vacuum (full, analyze) old", "vacuum-full 2, vacuum-full 2"},
		{"vacuum", outside + "vacuum old; vacuum (full false) old; vacuum (full 0) old; analyze old", ""},
		{"vacuum in a transaction", "vacuum old", "not-in-transaction 1"},
		{"analyze in a transaction", "analyze old", ""},
		{"cluster", "cluster old using i", "cluster 1"},
		{"cluster a new table", ours + "cluster ours using i", ""},
		{"system", "alter system set work_mem = '1MB'", "not-in-transaction 1"},
		{"databases", "create database d;\ndrop database d", "not-in-transaction 1, not-in-transaction 2"},
		{"detach", "alter table old detach partition p concurrently", "not-in-transaction 1"},
		{"detach, plainly", "alter table old detach partition p", ""},

		{"lock", "lock table old; lock old in share mode", "lock-table 1, lock-table 1"},
		{"weak lock", "lock table old in row share mode", ""},
		{"lock a new table", ours + "lock table ours", ""},
		{"truncate", "truncate old", "truncate 1"},
		{"truncate and restart", "truncate old, older restart identity", "truncate 1, sequence-back 1, truncate 1, sequence-back 1"},
		{"truncate and restart a new table", ours + "truncate ours restart identity", ""},
		{"sequence", "alter sequence s restart; alter sequence s cache 10;\nalter sequence s maxvalue 7 owned by none", "sequence-back 1, sequence-back 1, sequence-back 2"},
		{"sequence's owner", "alter sequence s owned by t.id; alter sequence s owner to x; alter sequence s rename to t", ""},
		{"sequence out of the WAL", "alter sequence s set unlogged;\nalter sequence s set logged", "sequence-back 1, sequence-back 2"},
		{"a new sequence", "create sequence s; alter sequence s cache 10; alter sequence s set unlogged", ""},
		{"setval", "select\nsetval('s', 1); select 1 where pg_catalog.setval('t'::regclass, max(1), true) > 0", "setval 2, setval 2"},
		{"setval of a new sequence", "create sequence s; select setval('s', 7)", ""},
		{"another setval", "select app.setval('s', 7), currval('s')", ""},
		{"truncate a new table", ours + "truncate ours", ""},
		{"trigger", "create trigger x before insert on old for each row execute function f()", "create-trigger 1"},
		{"trigger on a new table", ours + "create trigger x before insert on ours for each row execute function f()", ""},
		{"refresh", "refresh materialized view old", "refresh-materialized-view 1"},
		{"refresh, concurrently", "refresh materialized view concurrently old", ""},
		{"refresh a new one", "create materialized view v as select 1; refresh materialized view v", ""},
		{"update", "update old set a = 1", "update-without-where 1"},
		{"update within", "with x as (\n  update old set a = 1 returning *)\nselect * from x", "update-without-where 2"},
		{"update some", "update old set a = 1 where a = 2", ""},
		{"update a new table", ours + "update ours set name = 'x'", ""},
		{"delete", "delete from old", "delete-without-where 1"},
		{"delete some", "delete from old where a = 2", ""},
		{"delete from a new table", "create table x as select 1; delete from x; select 2 into y; delete from y", ""},

		{"drop table", "drop table old", "drop-table 1"},
		{"drop a new table", ours + "drop table ours", ""},
		{"drop tables", ours + "drop table ours, old", "drop-table 2"},
		{"drop a function", "drop function f(); drop type x; drop trigger x on old", ""},
		{"drop column", "alter table old drop column a", "drop-column 1"},
		{"drop a new table's column", ours + "alter table ours drop column name", ""},
		{"rename", "alter table old rename to new;\nalter table old rename a to b", "rename-table 1, rename-column 2"},
		{"rename what is new", ours + "alter table ours rename name to title; alter table ours rename to mine; create index on mine (title)", ""},
		{"rename an index", "alter index i rename to j; alter table old rename constraint a to b; alter type x rename to y", ""},
		{"another schema", "alter table old set schema public", "set-schema 1"},
		{"another schema for what is new", ours + "alter table ours set schema public", ""},

		{"lines", "-- é\n/* a\n /* b */\n*/ select ';';\n\n  -- first\n\ttruncate a; truncate b;\r\ntruncate c", "truncate 7, truncate 7, truncate 8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := found(t, test.sql, lint.Options{}); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.sql, got, test.want)
			}
		})
	}
}

func TestShardsByName(t *testing.T) {
	t.Parallel()
	isShard := func(schema string) bool { return strings.HasPrefix(schema, "shard_") }
	tests := []struct {
		name string
		own  string
		sql  string
		want string
	}{
		{"its own", "shard_00042", "insert into shard_00042.t select shard_00042.next_id()", ""},
		{"another", "shard_00042", "select 1;\ninsert into shard_00007.t\nselect shard_00042.next_id()", "shard-by-name 2"},
		{"any, when it may name none", "", "insert into shard_00042.t values (1)", "shard-by-name 1"},
		{"twice in a statement", "", "select a, shard_00007.f()\nfrom shard_00007.t, shard_00008.t", "shard-by-name 1, shard-by-name 2"},
		{"function", "", "create table t (id bigint default shard_00007.next_id())", "shard-by-name 1"},
		{"type", "", "create table t (x shard_00007.kind)", "shard-by-name 1"},
		{"sequence", "", "select\nnextval('shard_00007.s')", "shard-by-name 2"},
		{"cast", "", "select 'shard_00007.t'::regclass", "shard-by-name 1"},
		{"data", "", "insert into t values ('shard_00007'), ('shard_00007.'), ('x shard_00007.y')", ""},
		{"column", "", "select shard_00007.t.id from t", "shard-by-name 1"},
		{"drop", "", "drop function shard_00007.f()", "shard-by-name 1"},
		{"schema", "", "create schema shard_00007;\ndrop schema shard_00008;\ngrant usage on schema shard_00009 to x", "shard-by-name 1, shard-by-name 2, shard-by-name 3"},
		{"search path", "", "set local search_path = public, shard_00007", "search-path 1, shard-by-name 1"},
		{"its own as a table's name", "shard_00042", "create table t (); create index on shard_00042.t (id)", ""},
		{"no shard", "", "create table public.t (); select public.f(), pg_catalog.now()", "leaves-shard 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := found(t, test.sql, lint.Options{Schema: test.own, IsShard: isShard}); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.sql, got, test.want)
			}
		})
	}
}

// A key may refer to a table of an earlier file.
func TestColumnsOfEarlierTexts(t *testing.T) {
	t.Parallel()
	known := &lint.Known{}
	for _, step := range []struct{ sql, want string }{
		{"create table photos (id bigint primary key default next_id())", ""},
		{"create table likes (id bigint primary key, photo bigint, seen int)", ""},
		{"alter table likes add foreign key (photo) references photos;\nalter table likes add foreign key (seen) references photos", "narrow-id 2"},
		{"create table tags (photo int references photos (id))", "narrow-id 1"},
	} {
		warnings, err := lint.Check(step.sql, lint.Options{Known: known})
		got := ""
		for _, w := range warnings {
			if w.Rule == "narrow-id" {
				got = fmt.Sprintf("%s %d", w.Rule, w.Line)
			}
		}
		if err != nil || got != step.want {
			t.Errorf("%s: got %s, %v, want %s", step.sql, got, err, step.want)
		}
	}
	if got := found(t, "create table tags (photo int references photos (id))", lint.Options{}); got != "" {
		t.Errorf("without earlier texts: got %s", got)
	}
}

// Nobody waits for the locks of a table that an earlier text of the same run makes, and it has no rows.
func TestTablesOfEarlierTexts(t *testing.T) {
	t.Parallel()
	const later = "create index on ours (name); alter table ours alter name type int; alter table ours rename column name to n; create index on made (id); update ours set id = 1; drop table made;\ncreate index on others (id)"
	known := &lint.Known{}
	for _, step := range []struct{ sql, want string }{
		{ours + "create table if not exists made as select 1 as id; create table old (id int); create view v as select 1", ""},
		{"alter table old rename to others; create index on others (id)", ""},
		{"create index on theirs (id)", "create-index 1"},
		{"drop view v", ""},
		{later, ""},
		{"create table made (id int); create index on made (id)", ""},
	} {
		if got := found(t, step.sql, lint.Options{Known: known}); got != step.want {
			t.Errorf("%s: got %q, want %q", step.sql, got, step.want)
		}
	}
	if got := found(t, "create table app.t (id int)", lint.Options{Known: known, Shared: []string{"app"}}); got != "" {
		t.Errorf("got %q", got)
	}
	if got := found(t, "create index on app.t (id)", lint.Options{Known: known, Shared: []string{"app"}}); got != "create-index 1" {
		t.Errorf("a table that is there on hosts that ran the file: got %q", got)
	}
	known.HaveRun()
	const all = "create-index 1, alter-column-type 1, rename-column 1, create-index 1, update-without-where 1, drop-table 1, create-index 2"
	if got := found(t, later, lint.Options{Known: known}); got != all {
		t.Errorf("tables of shards that have run the texts: got %q, want %q", got, all)
	}
	if got := found(t, "create table if not exists ours (id int)", lint.Options{Known: known}); got != "" {
		t.Errorf("got %q", got)
	}
	if got := found(t, "create index on ours (id)", lint.Options{Known: known}); got != "create-index 1" {
		t.Errorf("a table that may have been there: got %q", got)
	}
}

// A function that names another one without its schema cannot be found by a move, which has no schema in its search_path.
func TestBareNames(t *testing.T) {
	t.Parallel()
	const bare = "create type mood as enum ('a'); create function ok(n bigint) returns bool language sql as 'select n < 10';\n" +
		"create function f(n bigint) returns bool immutable language plpgsql as $$begin return %s; end$$;\n"
	for _, tt := range []struct{ name, body, sql, want string }{
		{"a check", "ok(n)", "create table t (n bigint check (f(n)))", "bare-names 3"},
		{"a check of a table", "ok(n)", "create table t (n bigint,\nconstraint c check (n > 0 and f(n)))", "bare-names 4"},
		{"a check that is added", "ok(n)", "alter table t add check (f(n)) not valid", "bare-names 3"},
		{"a domain", "ok(n)", "create domain d as bigint check (f(value))", "bare-names 3"},
		{"a generated column", "ok(n)", "create table t (n bigint, b bool generated always as (f(n)) stored)", "bare-names 3"},
		{"an index", "ok(n)", "create table t (n bigint); create index on t (f(n))", "bare-names 3"},
		{"an index of some rows", "ok(n)", "create table t (n bigint); create index on t (n) where f(n)", "bare-names 3"},
		{"a type", "n::mood = 'a'", "create table t (n bigint check (f(n)))", "bare-names 3"},
		{"a table", "exists (select from t where t.n = f.n)", "create table t (n bigint check (f(n)))", "bare-names 3"},
		{"a qualified name", "shard_00001.ok(n)", "create table t (n bigint check (f(n)))", ""},
		{"only Postgres's own", "length(n::text) > 1", "create table t (n bigint check (f(n)))", ""},
		{"no call", "n > 1 or 'ok(n)' = 'x' /* ok(n) */", "create table t (ok bigint check (f(ok)))", ""},
		{"a default", "ok(n)", "create table t (n bigint, b bool default f(1))", ""},
		{"another function", "ok(n)", "create table t (n bigint check (ok(n)))", ""},
		{"a path of its own", "ok(n)", "alter function f(bigint) set search_path from current; create table t (n bigint check (f(n)))", ""},
		{"a path that is taken away", "ok(n)", "alter function f set search_path from current; alter function f reset search_path; create table t (n bigint check (f(n)))", "bare-names 3"},
		{"replaced before", "ok(n)", "create or replace function f(n bigint) returns bool immutable language sql return ok(n); create table t (n bigint check (f(n)))", ""},
		{"replaced after", "n > 1", "create table t (n bigint check (f(n)));\ncreate or replace function f(n bigint) returns bool immutable language sql as 'select ok(n)'", "bare-names 4"},
		{"dropped", "ok(n)", "drop function f; create function f(n bigint) returns bool immutable language sql set search_path = shard_00001 as 'select ok(n)'; create table t (n bigint check (f(n)))", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := found(t, fmt.Sprintf(bare, tt.body)+tt.sql, lint.Options{}); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.sql, got, tt.want)
			}
		})
	}
	known := &lint.Known{}
	if got := found(t, fmt.Sprintf(bare, "ok(n)"), lint.Options{Known: known}); got != "" {
		t.Errorf("the functions alone: got %q", got)
	}
	if got := found(t, "create domain d as bigint check (f(value))", lint.Options{Known: known}); got != "bare-names 1" {
		t.Errorf("functions of an earlier text: got %q", got)
	}
}

func TestWarningSaysWhatAndWhatInstead(t *testing.T) {
	t.Parallel()
	warnings, err := lint.Check("select 1;\ncreate index photos_title\n  on photos (title);\nlock photos in exclusive mode", lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []lint.Warning{
		{
			Rule: "create-index", Kind: lint.Locks, Line: 2, Statement: "create index photos_title on photos (title)",
			Effect:  "SHARE lock on the table until the index is built: blocks writes",
			Instead: "CREATE INDEX CONCURRENTLY, in a file of its own, marked ---- tern: disable-tx ----",
		},
		{
			Rule: "lock-table", Kind: lint.Locks, Line: 4, Statement: "lock photos in exclusive mode",
			Effect:  "EXCLUSIVE lock until the file's transaction ends: blocks writes",
			Instead: "let each statement take the lock that it needs",
		},
	}
	if fmt.Sprint(warnings) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", warnings, want)
	}
	long, err := lint.Check("update t set a = '"+strings.Repeat("é", 500)+"'", lint.Options{})
	if err != nil || len(long) != 1 || len([]rune(long[0].Statement)) != 120 {
		t.Errorf("a long statement: got %+v, %v", long, err)
	}
}

func TestTextsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sql  string
		line int
		want string
	}{
		{"syntax error", "select 1;\nselec 2", 2, `syntax error at or near "selec"`},
		{"after characters of many bytes", "select 'é日本🙂';\n\nselec 2;\nselect 3", 3, `syntax error at or near "selec"`},
		{"quote that is not closed", "select 1;\n select 'x", 2, `unterminated quoted string at or near "'x"`},
		{"at the end", "select 1;\ncreate table", 2, "syntax error at end of input"},
		{"psql's commands", "\\set x 1", 1, `syntax error at or near "\"`},
		{"zero byte", "select 1;\nselect '\x00'", 2, "there is a zero byte in it"},
		{"template", "select {{.shard}}", 1, `syntax error at or near "{"`},
		{"parentheses", "select " + strings.Repeat("(", 200_000) + "1" + strings.Repeat(")", 200_000), 1, `memory exhausted at or near "("`},
		{"deep", "select 1" + strings.Repeat("+1", 1000), 0, "its expressions are nested more than 400 deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			warnings, err := lint.Check(test.sql, lint.Options{})
			var parseErr *lint.ParseError
			if !errors.As(err, &parseErr) || warnings != nil {
				t.Fatalf("got %v and error %v, want a ParseError", warnings, err)
			}
			if parseErr.Line != test.line || parseErr.Message != test.want {
				t.Errorf("got line %d: %s\nwant line %d: %s", parseErr.Line, parseErr.Message, test.line, test.want)
			}
		})
	}
	if got := found(t, "truncate x", lint.Options{}); got != "truncate 1" {
		t.Errorf("after them: got %s", got)
	}
}

func TestExtensionsOfTheConfig(t *testing.T) {
	t.Parallel()
	opts := lint.Options{Extensions: []string{"citext"}}
	if got := found(t, "create extension if not exists citext", opts); got != "" {
		t.Errorf("got %s", got)
	}
	if got := found(t, "create extension citext;\ncreate extension if not exists hstore", opts); got != "create-extension 1, create-extension 2" {
		t.Errorf("got %s", got)
	}
}

func TestTextsThatAreLongOrDeep(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"many rows":       "insert into t values " + strings.Repeat("(1, 'abc', null),\n", 5000) + "(2)",
		"many statements": strings.Repeat("select 1;\n", 5000),
		"many ands":       "select true" + strings.Repeat(" and a = 1", 5000),
		"operators":       "select 1" + strings.Repeat("+1", 150),
		"functions":       "select " + strings.Repeat("f(", 150) + strings.Repeat(")", 150),
		"selects":         strings.Repeat("select * from (", 80) + "select 1" + strings.Repeat(")", 80),
		"unions":          "select 1" + strings.Repeat(" union all select 1", 350),
		"cases":           "select " + strings.Repeat("case when a then 1 else ", 150) + "0" + strings.Repeat(" end", 150),
	} {
		if got := found(t, sql+";\ntruncate t", lint.Options{}); !strings.HasPrefix(got, "truncate ") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestMachineThatPanicked runs itself in a process of its own, for no text is read after it.
func TestMachineThatPanicked(t *testing.T) {
	t.Parallel()
	if os.Getenv("KILOSHARD_TEST_LINT_PANIC") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMachineThatPanicked$")
		cmd.Env = append(os.Environ(), "KILOSHARD_TEST_LINT_PANIC=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	for _, test := range []struct{ sql, want string }{
		{"select 1" + strings.Repeat("+1", 20_000), "the parser gave up: stack overflow"},
		{"select 1", "the parser failed on a text before, and cannot be used again in this process"},
	} {
		if _, err := lint.Check(test.sql, lint.Options{}); err == nil || err.Error() != test.want {
			t.Errorf("got error %v, want %s", err, test.want)
		}
	}
}
