package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

// leaving are files that change something outside their shard, and part of the error that names it.
var leaving = []struct{ name, sql, want string }{
	{"a table", "create table if not exists public.notes (id bigint primary key)", `table public.notes, index public.notes_pkey; use names without a schema`},
	{"a table by search_path", "set search_path = public; create table notes ()", "table public.notes"},
	{"a table by set_config", "select pg_catalog.set_config('search_path', 'public', false); create table notes ()", "table public.notes"},
	{"a table in a subtransaction", "do $$ begin begin create table public.notes (); exception when others then null; end; end $$", "table public.notes"},
	{"a table by a function", "create function f() returns void language sql as 'create table public.notes ()'; select f()", "table public.notes"},
	{"a dropped table", "drop table public.countries", "table public.countries"},
	{"an altered table", "alter table public.countries add name text", "table public.countries"},
	{"a table of another schema, moved here", "alter table public.countries set schema {{.schema}}", "countries"},
	{"rows", "select 1; insert into public.countries values ('ch')", `insert into public.countries values ('ch')`},
	{"a trigger", "create trigger t before insert on public.countries for each row execute function suppress_redundant_updates_trigger()", "table public.countries"},
	{"a schema", "create schema if not exists app", `schema app; use names without a schema, which mean the shard's own; what all shards of a host share goes into a file of its own with the first line "-- kiloshard: once a host", and its schema into the config: "shared: [app]"`},
	{"rights on a schema", "grant usage on schema public to pg_monitor", "schema public"},
	{"rights on a table", "grant select on public.countries to pg_monitor", "table public.countries"},
	{"a function", "create function public.f() returns int language sql as 'select 1'", "function public.f()"},
	{"a function in DO", "do $$ begin execute 'create or replace function public.g() returns int language sql as ''select 2'''; end $$", "function public.g()"},
	{"a dropped function", "drop function public.g", "a dropped object"},
	{"an enum", "create type public.mood as enum ('a')", "public"},
	{"a domain", "create domain public.d as int", "type public.d"},
	{"a role", "create role kiloshard_left_ro", "roles; take it out of the file, and run it once on each host"},
	{"a setting of a role", "alter role current_user set work_mem = '5MB'", "settings of a role or a database"},
	{"a setting of the database", "do $$ begin execute format('alter database %I set work_mem = ''5MB''', current_database()); end $$", "settings of a role or a database"},
	{"an event trigger", "create function ev() returns event_trigger language plpgsql as 'begin end'; create event trigger ev on ddl_command_end execute function ev()", "event trigger ev"},
	{"an extension", "create extension citext", `extension citext; put "extensions: [citext]" into the config, and run kiloshard create, which makes it on each host`},
	{"an extension in the shard", "create extension citext schema {{.schema}}", `extension citext; put "extensions: [citext]"`},
	{"outside a transaction: an extension", "---- tern: disable-tx ----\ncreate extension citext", `extension citext; put "extensions: [citext]"`},
	{"a publication", "create publication p", "publication p"},
	{"an index, by its catalog", "update pg_index set indisclustered = true where indrelid = 'public.countries'::regclass", "table public.countries"},
	{"a column, by its catalog", "do $$ begin execute 'update pg_attribute set attstattarget = 7 where attrelid = ''public.countries''::regclass'; end $$", "table public.countries"},
	{"a cast", "create cast (text as int) with inout", "cast from text to integer"},
	{"another shard", "create table shard_00001.t ()", "table shard_00001.t"},
	{"outside a transaction: a table", "---- tern: disable-tx ----\ncreate table public.notes ()", "table public.notes"},
	{"outside a transaction: an index", "---- tern: disable-tx ----\ncreate index concurrently on public.countries (code)", "an index of public.countries"},
	{"outside a transaction: a path", "---- tern: disable-tx ----\nset search_path = public; select 1", "the search_path of a file"},
	{"outside a transaction: a database", "---- tern: disable-tx ----\ncreate database kiloshard_left", "this concerns the whole server"},
	{"a database", "create database kiloshard_left", "this concerns the whole server"},
}

const outside = `create table public.countries (code text primary key); create sequence public.numbers;
	create function public.g() returns int language sql as 'select 1'`

// Postgres's locks and catalogs show what a file changed outside its shard, whatever words the file uses.
func TestFilesThatLeaveTheirShard(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_a.sql", "create table a (id int)")
	b.execHost(b.m.Hosts()[0], outside)
	b.up()
	b.cfg.Shards = set(t, "0")
	for _, test := range leaving {
		b.cfg.Files = files("001_a.sql", "create table a (id int)", "002_b.sql", test.sql)
		_, partial := b.upFails()
		if text := partial.Error(); !strings.Contains(text, test.want) || !strings.Contains(text, "migration 002_b.sql") || strings.Contains(text, "keep_inside") {
			t.Errorf("%s: got error %s, want %s", test.name, text, test.want)
		}
		equal(t, test.name+": version", b.value(0, "select version from schema_version"), "1")
	}
	equal(t, "tables in public", b.value(0, "select string_agg(relname, ' ') from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"), "countries")
}

// A file that looks for a table by its name alone finds those of all shards. The first shard of a run has the only one.
func TestFileThatFindsOtherShards(t *testing.T) {
	t.Parallel()
	const named = "where indrelid in (select oid from pg_class where relname = 'a')"
	for name, file := range map[string]string{
		"update":   "update pg_index set indisclustered = true " + named,
		"composed": "do $$ begin execute 'update pg_' || 'index set indisclustered = true ' || $x$" + named + "$x$; end $$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_a.sql", "create table a (id int primary key)", "002_b.sql", file)
			b.cfg.PerHost = 1
			_, partial := b.upFails()
			if !errors.Is(partial, migrate.ErrLeftShard) || !strings.Contains(partial.Error(), "table shard_00000.a") {
				t.Errorf("got error %v, want one about shard 0", partial)
			}
			equal(t, "versions", fmt.Sprint(b.versions()), "[2 1]")
		})
	}
}

// A file that stays inside its shard, or only reads what is outside, runs.
func TestFilesThatStayInTheirShard(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 1,
		"001_a.sql", `
			create table a (id int primary key, code text references public.countries, n bigint default nextval('public.numbers'));
			insert into a values (1, 'ch');
			create temporary table t (id int); insert into t select id from a;
			create type mood as enum ('a'); alter type mood add value 'b';
			update pg_index set indisclustered = true where indrelid = 'a'::regclass; alter table a alter n set statistics 7;
			alter table a alter constraint a_code_fkey deferrable; alter table t alter id set statistics 7;
			create domain d as int check (value > 0);
			create cast (mood as d) with inout;
			create extension if not exists plpgsql;
			create table gone (code text references public.countries); create function gone() returns int language sql as 'select 1'`,
		"002_b.sql", `
			drop table gone; drop function gone;
			do $$ begin begin alter table a add b int; exception when others then null; end; end $$;
			set role pg_monitor; select 1; reset role;
			set search_path = {{.schema}}; create view v as select * from public.countries; grant select on v to pg_monitor;
			grant usage on schema {{.schema}} to pg_monitor; alter default privileges in schema {{.schema}} grant select on tables to pg_monitor;
			comment on table a is 'x'; truncate a; notify x`,
		"003_c.sql", "---- tern: disable-tx ----\ncreate index concurrently i on a (code); reindex index concurrently i; vacuum a; create table c (id int)",
		"004_d.sql", "alter table a drop constraint a_code_fkey\n---- create above / drop below ----\nalter table a add foreign key (code) references public.countries",
	)
	b.execHost(b.m.Hosts()[0], outside+`; insert into public.countries values ('ch')`)
	b.up()
	b.cfg.To = 3
	if _, err := migrate.Down(t.Context(), b.cfg); err != nil {
		t.Error(err)
	}
}

// A name of another schema that does not exist is usually one of the shard's own.
func TestFileThatNamesPublicInVain(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	for _, wrong := range []string{"create index on public.a (id)", "select public.f(1)", "create table b (m public.mood)"} {
		b.cfg.Files = files("001_a.sql", "create table a (id int); "+wrong)
		if _, partial := b.upFails(); !strings.Contains(partial.Error(), "; names without a schema mean the shard's own; in: "+wrong) {
			t.Errorf("%s: got %v", wrong, partial)
		}
	}
	b.cfg.Files = files("001_a.sql", "select 'public.a' from missing")
	if _, partial := b.upFails(); strings.Contains(partial.Error(), "names without") {
		t.Errorf("got %v", partial)
	}
}

// The run ends with the first shard that a file left, since it does the same in all others.
func TestRunEndsWhenAFileLeavesItsShard(t *testing.T) {
	t.Parallel()
	b := setup(t, 16, 1, "001_a.sql", "create table public.notes ()")
	b.cfg.PerHost = 1
	_, partial := b.upFails()
	equal(t, "failed shards", len(partial.Failed), 1)
	equal(t, "not attempted", partial.NotAttempted.Len(), 15)
	if !errors.Is(partial, migrate.ErrLeftShard) {
		t.Errorf("got %v, want ErrLeftShard", partial)
	}
}
