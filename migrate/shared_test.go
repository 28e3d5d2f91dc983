package migrate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const once = "-- kiloshard: once a host\n"

// setupShared is [setup] with the schemas public and app in the config.
func setupShared(t *testing.T, count, hosts int, namesAndContents ...string) *bundle {
	t.Helper()
	b := setup(t, count, hosts, namesAndContents...)
	c := b.m.Config()
	c.SharedSchemas = []string{"app", "public"}
	b.share(c)
	return b
}

func (b *bundle) share(c shards.Config) {
	b.t.Helper()
	m, err := c.Map()
	if err != nil {
		b.t.Fatal(err)
	}
	b.m, b.cfg.Map = m, m
}

// A file marked to run once a host does so, before the shards of the host pass it.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 8, 2,
		"001_a.sql", "create table a (id int)",
		"002_app.sql", once+`create schema app; create table countries (code text primary key); insert into countries values ('ch');
			create type app.mood as enum ('a'); create function public.f() returns int language sql as 'select 1'; grant usage on schema app to pg_monitor`,
		"003_b.sql", "create table b (code text default 'ch' references app.countries, mood app.mood, n int default public.f()); insert into b default values",
		"004_app.sql", once+"alter type app.mood add value 'b'; alter table app.countries add name text; drop function if exists app.none()",
	)
	report := b.up()
	equal(t, "shared files", len(report.Shared), 2)
	equal(t, "hosts of the first", strings.Join(report.Shared[0].Hosts, " "), b.m.Hosts()[0].Name+" "+b.m.Hosts()[1].Name)
	for _, n := range []shards.Number{0, 4} {
		equal(t, "rows", b.value(n, "select count(*) from app.countries"), "1")
		equal(t, "entries", b.value(n, "select string_agg(version || file || shard, ' ' order by version) from kiloshard.ledger where direction = 'shared' and current"), "2002_app.sql-1 4004_app.sql-1")
	}
	equal(t, "version", b.value(7, "select version from schema_version"), "4")
	equal(t, "shared files of a second run", len(b.up().Shared), 0)

	// The way down passes the file, and the way up does not run it again.
	b.cfg.To = 1
	b.cfg.Files = files("001_a.sql", "create table a (id int)", "002_app.sql", once+"create schema app", "003_b.sql", "select 1\n---- create above / drop below ----\ndrop table b", "004_app.sql", once+"select 1")
	if _, err := migrate.Down(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.To = 0
	equal(t, "shared files after the way down", len(b.up().Shared), 0)
}

// A file marked to run once a host changes the config's schemas, and nothing else, or is undone.
func TestSharedFilesThatLeaveTheirSchemas(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 2, 1, "001_a.sql", "create table a (id int primary key)", "002_app.sql", once+"create schema app; create table app.t (id int)")
	b.execHost(b.m.Hosts()[0], "create schema other; create table other.t (id int)")
	b.up()
	for _, test := range []struct{ sql, want string }{
		{"create table shard_00000.t ()", "table shard_00000.t"},
		{"insert into shard_00001.a values (1)", "table shard_00001.a"},
		{"do $$ begin begin insert into shard_00001.a values (1); exception when others then null; end; end $$", "table shard_00001.a"},
		{"alter table app.t add foreign key (id) references shard_00001.a", "table shard_00001.a"},
		{"drop table other.t", "table other.t"},
		{"create function shard_00000.f() returns int language sql as 'select 1'", "function shard_00000.f()"},
		{"create table app.ok (); create schema more", "schema more"},
		{"create role kiloshard_shared_ro", "roles"},
		{"create extension citext", `put "extensions: [citext]" into the config`},
		{"set search_path = other; create table x ()", "table other.x"},
	} {
		b.cfg.Files = files("001_a.sql", "create table a (id int primary key)", "002_app.sql", once+"select 1", "003_b.sql", once+test.sql)
		_, partial := b.upFails()
		text := partial.Error()
		if !strings.Contains(text, test.want) || !strings.Contains(text, "migration 003_b.sql") || !strings.Contains(text, "it runs once a host, and changes more than the schemas that the config shares, which are app, public") {
			t.Errorf("%s: got error %s, want %s", test.sql, text, test.want)
		}
		equal(t, test.sql+": version", b.value(0, "select version from schema_version"), "2")
		equal(t, test.sql+": entries", b.value(0, "select count(*) from kiloshard.ledger where direction = 'shared'"), "1")
	}
	equal(t, "tables", b.value(0, "select string_agg(relnamespace::regnamespace || '.' || relname, ' ' order by relname, relnamespace::regnamespace::text) from pg_class where relname in ('t', 'x', 'ok')"), "app.t other.t")

	b.cfg.Files = files("001_a.sql", "create table a (id int primary key)", "002_app.sql", once+"select 1", "003_b.sql", once+"select 1;\nselect 1/0")
	_, partial := b.upFails()
	if want := "migration 003_b.sql, line 3: division by zero (SQLSTATE 22012); in: select 1/0"; !strings.Contains(partial.Error(), want) {
		t.Errorf("got error %v, want %s", partial, want)
	}
}

// A host that joins later gets the files although it has no shards, and a shard cannot pass a file that its host lacks.
func TestSharedFilesOfANewHost(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 2, 1, "001_app.sql", once+"create schema app", "002_a.sql", "create table a (id int)")
	b.up()
	c := b.m.Config()
	added := shardtest.Hosts(t, 1)[0]
	added.Name = "pg-new"
	c.Hosts = append(c.Hosts, added)
	b.share(c)
	report := b.up()
	if len(report.Shared) != 1 || strings.Join(report.Shared[0].Hosts, " ") != "pg-new" {
		t.Errorf("got %v, want the file on pg-new", report.Shared)
	}
	b.execHost(b.m.Hosts()[0], "update kiloshard.ledger set current = false where direction = 'shared'")
	if _, err := b.on(b.m.Hosts()[0]).Exec(t.Context(), "select kiloshard.need_shared(1)"); err == nil || !strings.Contains(err.Error(), "this host has not run file 1") {
		t.Errorf("got error %v, want that the host has not run the file", err)
	}
}

// Two runs at once run the file once.
func TestSharedFilesInTwoRuns(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 2, 1, "001_app.sql", once+"create schema app; select pg_sleep(0.2)", "002_a.sql", "create table a (id int)")
	errs := make(chan error)
	for range 2 {
		go func() {
			_, err := migrate.Up(context.WithoutCancel(t.Context()), b.cfg)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	equal(t, "entries", b.value(0, "select count(*) from kiloshard.ledger where direction = 'shared'"), "1")
}

// Files with the mark that cannot run once a host are refused before a host is contacted.
func TestSharedFilesRefused(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 1, 1)
	for _, test := range []struct{ text, want string }{
		{"select 1;\n" + once, `line 2: a mark for kiloshard: expected "-- kiloshard: once a host", as the file's first line`},
		{"-- Kiloshard: once per host\nselect 1", "line 1: a mark for kiloshard: expected"},
		{once + "---- tern: disable-tx ----\nselect 1", `both to run once a host and "tern: disable-tx"`},
		{once + "select '{{.schema}}'", "has a template"},
		{once + "create schema app\n---- create above / drop below ----\ndrop schema app", "has a way down"},
		{once + "select 'open", "cannot be split into statements"},
		{once + "commit", "a file is run in a transaction of its own"},
	} {
		b.cfg.Files = files("001_a.sql", test.text)
		if _, err := migrate.Up(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "migration 001_a.sql") {
			t.Errorf("%q: got error %v, want %s", test.text, err, test.want)
		}
	}
	c := b.m.Config()
	c.SharedSchemas = nil
	b.share(c)
	b.cfg.Files = files("001_a.sql", once+"create schema app")
	if _, err := migrate.Up(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), `"shared: [app]"`) {
		t.Errorf("got error %v, want one that names the field", err)
	}
}

// New shards on a new host are made from a snapshot, once their host has run the files.
func TestSharedFilesBeforeASnapshot(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 16, 2,
		"001_a.sql", "create table a (id int)", "002_app.sql", once+"create schema app; create table app.countries (code text primary key)",
		"003_b.sql", "create table b (code text references app.countries)", "004_c.sql", "create table c ()")
	b.cfg.SnapshotFrom = 2
	b.cfg.Shards = set(t, "0-7")
	b.up()
	b.cfg.Shards = set(t, "0-15")
	report := b.up()
	if report.Donor == nil || report.NoSnapshot != nil || report.Done.Len() != 8 || len(report.Shared) != 1 || report.Shared[0].Hosts[0] != b.m.Hosts()[1].Name {
		t.Errorf("got %+v, want shards 8 to 15 from a snapshot, after the file on their host", report)
	}
	equal(t, "tables", b.value(15, "select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = 'shard_00015'::regnamespace and relkind = 'r'"), "a b c schema_version")
}
