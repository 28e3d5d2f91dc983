package migrate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	users  = "create table users (id bigint primary key, name text not null);\ncreate index on users (name);\n"
	photos = "create table photos (id bigint primary key, owner bigint not null references users);\n" +
		"create index photos_owner on photos (owner);\n---- create above / drop below ----\ndrop table photos;\n"
)

func TestUpRunsEveryFileInEveryShard(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 2, "001_users.sql", users, "002_photos.sql", photos)

	report := b.up()
	equal(t, "target", report.Target, 2)
	equal(t, "done", report.Done.String(), "0-9")
	equal(t, "up to date", report.UpToDate.String(), "")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{0 2 0-9}]")
	if report.Elapsed <= 0 {
		t.Error("no time elapsed")
	}
	for n := range b.m.All().All() {
		equal(t, "version", b.value(n, "select version from schema_version"), "2")
		b.exec(n, "insert into users values (1, 'ann'); insert into photos values (2, 1)")
		equal(t, "indexes", b.value(n, "select count(*) from pg_indexes where schemaname = '"+b.m.Schema(n)+"'"), "5")
	}
	for _, schema := range []string{"public", "pg_catalog"} {
		equal(t, "tables in "+schema, b.value(0, "select count(*) from pg_tables where tablename in ('users', 'photos', 'schema_version') and schemaname = '"+schema+"'"), "0")
	}
}

func TestUpOfWhatIsUpToDateDoesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2, "001_users.sql", users)
	b.up()
	before := b.value(0, "select xmin from schema_version")

	report := b.up()
	equal(t, "done", report.Done.String(), "")
	equal(t, "up to date", report.UpToDate.String(), "0-5")
	equal(t, "steps", len(report.Steps), 0)
	equal(t, "the version's row", b.value(0, "select xmin from schema_version"), before)
}

func TestUpToAVersionAndOnFromThere(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2, "001_users.sql", users, "002_photos.sql", photos)
	b.cfg.Shards, b.cfg.To = set(t, "1,4"), 1
	equal(t, "done", b.up().Done.String(), "1,4")
	equal(t, "versions", fmt.Sprint(b.versionsOfAll()), "[0 1 0 0 1 0]")

	b.cfg.Shards, b.cfg.To = shards.Set{}, 0
	report := b.up()
	equal(t, "steps", fmt.Sprint(report.Steps), "[{0 2 0,2-3,5} {1 2 1,4}]")
	equal(t, "versions", fmt.Sprint(b.versionsOfAll()), "[2 2 2 2 2 2]")

	b.cfg.To = 1
	equal(t, "above the target", b.up().UpToDate.String(), "0-5")
}

func (b *bundle) versionsOfAll() []int32 {
	b.t.Helper()
	all := *b
	all.cfg.Shards = shards.Set{}
	return all.versions()
}

func TestUpRendersTemplatesForEachShard(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 2,
		"001_where.sql", `create table here as select '{{.schema}}'::text as schema, {{.shard}} as shard; {{template "shared/more.sql" .}}`,
		"002_odd.sql", `{{if mod .shard 2 | eq 1}}create table odd (){{else}}create table even (){{end}}`,
		"shared/more.sql", `create table "more_{{.shard}}" ();`)
	b.up()
	for n := range b.m.All().All() {
		equal(t, "schema", b.value(n, "select schema from here"), b.m.Schema(n))
		equal(t, "shard", b.value(n, "select shard from here"), fmt.Sprint(n))
		table := fmt.Sprintf("more_%d", n)
		equal(t, "the shared template's", b.value(n, "select to_regclass('"+table+"')"), table)
		want := []string{"even", "odd"}[n%2]
		equal(t, "the conditional's", b.value(n, "select string_agg(tablename, ',') from pg_tables where tablename in ('odd', 'even') and schemaname = '"+b.m.Schema(n)+"'"), want)
	}
}

// What a file leaves behind in its session must not reach the next shard, nor the next file.
func TestUpKeepsFilesApart(t *testing.T) {
	t.Parallel()
	b := setup(t, 12, 1,
		"001_mess.sql", `
			create temp table scratch (a int);
			prepare p as select 1;
			declare c cursor with hold for select 1;
			listen l;
			set search_path = public;
			set statement_timeout = '1h';
			create table {{.schema}}.seen as select current_user::text as who;
			grant usage, create on schema {{.schema}} to pg_monitor;
			grant all on {{.schema}}.schema_version to pg_monitor;
			set role pg_monitor`,
		"002_look.sql", `
			create table settings as select current_setting('statement_timeout') as timeout, current_schema() as schema`,
	)
	b.cfg.PerHost = 1
	b.up()
	for n := range b.m.All().All() {
		equal(t, "timeout", b.value(n, "select timeout from settings"), "0")
		equal(t, "schema", b.value(n, "select schema from settings"), b.m.Schema(n))
		equal(t, "role", b.value(n, "select who <> 'pg_monitor' from seen"), "true")
	}
}

func TestStatusCountsVersions(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 2, "001_users.sql", users, "002_photos.sql", photos)
	b.cfg.Shards, b.cfg.To = set(t, "0-1,6"), 1
	b.up()
	b.exec(3, "drop schema shard_00003")

	b.cfg.Shards = shards.Set{}
	status, err := migrate.Status(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"001_users.sql", "002_photos.sql"}; !slices.Equal(status.Files, want) {
		t.Errorf("files: got %q, want %q", status.Files, want)
	}
	equal(t, "pg-a", fmt.Sprint(status.Hosts[0]), "{pg-a [{0 2 2} {1 1 0-1}] 3 [] <nil>}")
	equal(t, "pg-b", fmt.Sprint(status.Hosts[1]), "{pg-b [{0 2 4-5,7} {1 1 6}]  [] <nil>}")
	equal(t, "pending", status.Pending().String(), "0-2,4-7")
}
