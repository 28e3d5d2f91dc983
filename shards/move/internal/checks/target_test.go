package checks_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// fakes makes a session find its own functions in place of Postgres's, to simulate settings of another server.
const fakes = `create schema fakes; set search_path = fakes, pg_catalog; `

const ledger = `create schema kiloshard; create table kiloshard.ledger (version int, file text, direction text, current boolean); `

// The checks report what is missing on a target, or differs there. Each case rolls its transactions back.
func TestTarget(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	source, target := connect(t, hosts[0].ConnString()), connect(t, hosts[1].ConnString())
	source.shard()
	role := "owner_of_" + source.text(`select current_database()`)
	collations := `create collation public.odd (locale = 'C'); `
	extended := `create function public.touch() returns trigger language plpgsql as 'begin return new; end'; alter extension plpgsql add function public.touch(); `
	for _, tt := range []struct {
		name, source, target string
		want                 []string
	}{
		{"nothing", "", "", nil},
		{
			"an extension is missing", "", "drop extension plpgsql cascade",
			[]string{"extension plpgsql is missing: expected \"extensions: [plpgsql]\" in the config, and kiloshard create, which makes it on each host"},
		},
		{
			"an extension of another version", "", "update pg_extension set extversion = '0.9' where extname = 'plpgsql'",
			[]string{"extension plpgsql 0.9, on the source plpgsql 1.0: expected the same version"},
		},
		{
			"an extension in another schema", "", "update pg_extension set extnamespace = 'public'::regnamespace where extname = 'plpgsql'",
			[]string{"extension plpgsql in schema public, on the source in pg_catalog: expected the same schema"},
		},
		{
			"an extension that the shard does not need", "drop function shard_00001.f()", "drop extension plpgsql cascade", nil,
		},
		{
			"an extension that only a view needs", "drop function shard_00001.f(); create view shard_00001.v as select 1 as n where plpgsql_validator(1) is null", "drop extension plpgsql cascade",
			[]string{"extension plpgsql is missing: expected \"extensions: [plpgsql]\" in the config, and kiloshard create, which makes it on each host"},
		},
		{
			"an extension that only a trigger needs", "drop function shard_00001.f(); " + extended + "create trigger t before insert on shard_00001.photos for each row execute function public.touch()",
			"drop extension plpgsql cascade",
			[]string{"extension plpgsql is missing: expected \"extensions: [plpgsql]\" in the config, and kiloshard create, which makes it on each host"},
		},
		{
			"an extension that only a policy needs", "drop function shard_00001.f(); create policy p on shard_00001.photos using (plpgsql_validator(1) is null)",
			"drop extension plpgsql cascade",
			[]string{"extension plpgsql is missing: expected \"extensions: [plpgsql]\" in the config, and kiloshard create, which makes it on each host"},
		},
		{
			"a collation is missing", collations + "alter table shard_00001.photos alter title type text collate public.odd", "",
			[]string{"collation public.odd is missing"},
		},
		{
			"a collation of the same name in another schema", collations + "alter table shard_00001.photos alter title type text collate public.odd",
			"create schema other; create collation other.odd (locale = 'C')",
			[]string{"collation public.odd is missing"},
		},
		{
			"a collation of another version", collations + "alter table shard_00001.photos alter title type text collate public.odd",
			collations + fakes + "create function fakes.pg_collation_actual_version(oid) returns text language sql as $$select '2.99'$$",
			[]string{"note: collation public.odd is of version 2.99, on the source of -: its order may differ; indexes are made anew"},
		},
		{
			"a collation of another provider", collations + "alter table shard_00001.photos alter title type text collate public.odd",
			"create collation public.odd (provider = icu, locale = 'und')",
			[]string{"note: collation public.odd is icu und, on the source libc C: its order may differ; indexes are made anew"},
		},
		{
			"a collation by which other texts are equal", collations + "alter table shard_00001.photos alter title type text collate public.odd",
			"create collation public.odd (provider = icu, locale = 'und', deterministic = false)",
			[]string{"collation public.odd has deterministic = false, on the source true: expected the same, so that the same texts are equal"},
		},
		{
			"the same collation", collations + "alter table shard_00001.photos alter title type text collate public.odd", collations, nil,
		},
		{
			"the owner of a table is missing", fmt.Sprintf("create role %[1]s; grant usage on schema shard_00001 to %[1]s; alter table shard_00001.photos owner to %[1]s", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"the owner of a function is missing", fmt.Sprintf("create role %[1]s; alter function shard_00001.f() owner to %[1]s", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"an owner that is a superuser here", "alter function shard_00001.f() owner to pg_monitor",
			fakes + "create view fakes.pg_roles as select oid, rolname, rolsuper or rolname = 'pg_monitor' as rolsuper, rolcreaterole, rolreplication, rolbypassrls from pg_catalog.pg_roles",
			[]string{`role "pg_monitor", which owns something of the shard, is SUPERUSER, and on the source it is not: expected a role of the same rights, or another owner`},
		},
		{
			"an owner that runs programs here", "alter function shard_00001.f() owner to pg_monitor", "grant pg_execute_server_program to pg_monitor; update pg_authid set rolcreaterole = true where rolname = 'pg_monitor'",
			[]string{`role "pg_monitor", which owns something of the shard, is CREATEROLE, a member of pg_execute_server_program, and on the source it is not: expected a role of the same rights, or another owner`},
		},
		{
			"who may read a column is missing", fmt.Sprintf("create role %[1]s; grant select (title) on shard_00001.photos to %[1]s", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"who may use a type is missing", fmt.Sprintf("create role %[1]s; create type shard_00001.mood as enum ('glad'); grant usage on type shard_00001.mood to %[1]s", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"whom a policy is for is missing", fmt.Sprintf("create role %[1]s; create policy p on shard_00001.photos to %[1]s using (true)", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"who may use later tables is missing", fmt.Sprintf("create role %[1]s; alter default privileges in schema shard_00001 grant select on tables to %[1]s", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"who makes later tables is missing", fmt.Sprintf("create role %[1]s; alter default privileges for role %[1]s in schema shard_00001 grant select on tables to pg_monitor", role), "",
			[]string{"role " + role + " is missing: something of the shard belongs to it, or is granted to it"},
		},
		{
			"the database's collation of another version", "", fakes + "create function fakes.pg_database_collation_actual_version(oid) returns text language sql as $$select '2.99'$$",
			[]string{"note: the database's collation is of version 2.99, the source's of " + source.text(`select coalesce(pg_database_collation_actual_version(oid), '-') from pg_database where datname = current_database()`) +
				": texts may sort otherwise; indexes are made anew"},
		},
		{
			"an older Postgres", fakes + `create function fakes.current_setting(text) returns text language sql as $$select case $1 when 'server_version_num' then '990000' else pg_catalog.current_setting($1) end$$`, "",
			[]string{"note: it is Postgres " + target.text(`select current_setting('server_version_num')::int / 10000 || ''`) + ", the source 99"},
		},
		{
			"a migration that runs once a host", ledger + "insert into kiloshard.ledger values (2, '002_app.sql', 'shared', true), (3, '003_b.sql', 'up', true)", ledger + "insert into kiloshard.ledger values (1, '001_a.sql', 'shared', true)",
			[]string{"migration 002_app.sql, which runs once a host, has not run there: expected kiloshard migrate up first"},
		},
		{
			"the same migration", ledger + "insert into kiloshard.ledger values (2, '002_app.sql', 'shared', true)", ledger + "insert into kiloshard.ledger values (2, '002_app.sql', 'shared', true)", nil,
		},
		{"the schema is there", "", "create schema shard_00001", []string{"schema shard_00001 is there already: expected none, or drop it once no row is only in it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source, target := session{t, source.Conn}, session{t, target.Conn}
			source.exec("begin; " + tt.source)
			target.exec("begin; " + tt.target)
			shard := source.onSource(false)
			equal(t, "source", lines(shard.Found))
			for _, offline := range []bool{false, true} {
				equal(t, fmt.Sprintf("target, offline %t", offline), lines(target.onTarget(shard, offline)), tt.want...)
			}
			source.exec("rollback")
			target.exec("rollback")
		})
	}
}

// The checks report a database with another encoding or locale than the source's.
func TestDatabases(t *testing.T) {
	t.Parallel()
	host := shardtest.Hosts(t, 1)[0]
	admin := connect(t, host.ConnString())
	name := admin.text(`select current_database()`)
	makeDatabase := func(t *testing.T, suffix, options string) session {
		t.Helper()
		database := pgx.Identifier{name + suffix}.Sanitize()
		admin.exec(fmt.Sprintf(`create database %s template template0 %s`, database, options))
		t.Cleanup(func() { later(t, host.ConnString(), `drop database `+database+` with (force)`) })
		cfg := admin.Config().Copy()
		cfg.Database = name + suffix
		return connectConfig(t, cfg)
	}
	const (
		libc = ` locale_provider libc`
		icu  = ` locale_provider icu icu_locale 'en'`
	)
	source := makeDatabase(t, "_a", `encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`+libc)
	source.shard()
	shard := source.onSource(false)
	for _, tt := range []struct {
		name, options string
		want          []string
	}{
		{"the same", `encoding 'UTF8' lc_collate 'C' lc_ctype 'C'` + libc, nil},
		{"another encoding", `encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'` + libc, []string{"the database is in LATIN1, the source in UTF8: expected the same encoding"}},
		{
			"other letters", `encoding 'UTF8' lc_collate 'C' lc_ctype 'C.UTF-8'` + libc,
			[]string{`the database's locale is "c C C.UTF-8", the source's "c C C": expected the same, so that texts sort alike`},
		},
		{
			"another encoding and another provider", `encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'` + icu,
			[]string{"the database is in LATIN1, the source in UTF8: expected the same encoding", `the database's locale is "i C C en", the source's "c C C": expected the same, so that texts sort alike`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			equal(t, "target", lines(makeDatabase(t, "_b", tt.options).onTarget(shard, false)), tt.want...)
		})
	}
}

// Clocks that differ are a note, and clocks that differ by a minute are a problem.
func TestClocks(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	source, target := connect(t, hosts[0].ConnString()), connect(t, hosts[1].ConnString())
	const (
		behind = `^note: its clock is %s behind the source's: until it has caught up with the IDs that were made, next_id\(\) sleeps for a moment before each ID$`
		ahead  = `^note: its clock is %s ahead of the source's: IDs made there look as much later$`
		far    = `^its clock is %s the source's: expected less than 1m0s, since IDs are made of it$`
	)
	target.exec(fakes)
	for _, tt := range []struct{ clock, want string }{
		{"0", ""},
		{"-0.9 s", ""},
		{"0.9 s", ""},
		{"-5.04 s", fmt.Sprintf(behind, "(5|4\\.9)s")},
		{"5.04 s", fmt.Sprintf(ahead, "(5|4\\.9)s")},
		{"-59 s", fmt.Sprintf(behind, "(59|58\\.9)s")},
		{"-65.04 s", fmt.Sprintf(far, "1m(5|4\\.9)s behind")},
		{"65.04 s", fmt.Sprintf(far, "1m(5|4\\.9)s ahead of")},
		{"2 days", fmt.Sprintf(far, "(48h0m0|47h59m59\\.9)s ahead of")},
	} {
		t.Run(tt.clock, func(t *testing.T) {
			target := session{t, target.Conn}
			target.exec(`create or replace function fakes.clock_timestamp() returns timestamptz language sql as $$select pg_catalog.clock_timestamp() + interval '` + tt.clock + `'$$`)
			found, err := checks.Clocks(t.Context(), source.Conn, target.Conn)
			if err != nil {
				t.Fatal(err)
			}
			matches(t, lines(found), tt.want)
		})
	}
}

// The checks report owners that may not write to their tables if rows are applied with their rights, as from Postgres
// 16 on.
func TestBarredOwners(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	source, target := connect(t, hosts[0].ConnString()), connect(t, hosts[1].ConnString())
	source.shard()
	source.exec(`create table shard_00001.past (n int primary key); alter table shard_00001.past owner to pg_monitor; revoke insert on shard_00001.past from pg_monitor`)
	for _, host := range []session{source, target} {
		host.exec(fakes + `create function fakes.pg_has_role(oid, text) returns bool language sql as 'select true';
			create function fakes.current_setting(text) returns text language sql as $$select case $1 when 'server_version_num' then '160000' else pg_catalog.current_setting($1) end$$`)
	}
	const expected = ": expected it, since rows are applied with the owner's rights; or --offline"
	for _, offline := range []bool{false, true} {
		var want []string
		if !offline {
			want = []string{
				"role pg_monitor owns tables of the shard, and on the source it has no USAGE on the schema" + expected,
				"role pg_monitor owns table past, and on the source it has no INSERT on it" + expected,
			}
		}
		equal(t, fmt.Sprintf("target, offline %t", offline), lines(target.onTarget(source.onSource(offline), offline)), want...)
	}
}
