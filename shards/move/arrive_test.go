package move_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

const everything = `
set search_path = shard_00001, pg_temp;
create sequence "Odd Name" as int increment -5 minvalue -1000 maxvalue 77 start 70 cycle;
select nextval('"Odd Name"'), nextval('"Odd Name"');
create sequence untouched start 5;
create sequence ahead start 5; select setval('ahead', 1000, false);
create sequence behind start 100; alter sequence behind restart with 50;
create sequence falling increment -1 start -5; select setval('falling', -1000, false);
create table deferred (n int primary key deferrable); insert into deferred select generate_series(1, 10);
create table hollow (); insert into hollow default values;
create table "Bare Table" (n int, what text, at timestamptz default now());
insert into "Bare Table" select n % 10, 'same' from generate_series(1, 100) n;
create materialized view counted as select count(*) as n from photos; create unique index counted_n on counted (n);
create table lost (n int not null, t text) with (toast.vacuum_truncate = false); create unique index lost_n on lost (n); alter table lost replica identity using index lost_n; drop index lost_n;
insert into lost select n, repeat('x', n) from generate_series(1, 10) n;
create table shrunk (n int primary key, t text) with (toast.vacuum_truncate = false); alter table shrunk drop column t;
create table "{{.schema}}" (t text default '{{.schema}} {{.shard}} {{"{{"}}', "{""" int); comment on table "{{.schema}}" is '{{.schema}} {shard_00001}';
create view all_counted as select n from counted;
create materialized view a_reader as select n * 2 as n from all_counted; -- its name is before that of what it reads
create materialized view unfilled as select n from counted with no data;
alter materialized view counted owner to pg_monitor; grant usage on schema shard_00001 to pg_monitor; grant select on photos to pg_monitor; grant select on counted to pg_read_all_data; comment on materialized view counted is 'counts';
insert into photos (title) values ('since it was counted');
create unlogged table fast (n int primary key, half numeric generated always as (n / 2.0) stored); insert into fast select generate_series(1, 50);
create unlogged table refers (n int references fast); insert into refers values (7);
create view fast_ones as select n from fast; create materialized view fastest as select max(n) as n from fast_ones;
create function fail() returns trigger language plpgsql as $$ begin raise 'a trigger has run'; end $$; create trigger fail before insert on fast for each row execute function fail();
create table silent (n int primary key) with (fillfactor = 70, autovacuum_enabled = false, toast.autovacuum_vacuum_threshold = 77);
alter table silent replica identity nothing;
insert into silent select generate_series(1, 10);
create domain positive as int check (value > 0);
create table kinds (id bigint generated always as identity primary key, n positive, half numeric generated always as (n / 2.0) stored,
  t text collate "C", a int[], b bytea, j json, u uuid default gen_random_uuid(), r int4range, check (n < 100000));
insert into kinds (n, t, a, b, j, r) select n, repeat('x', n * 100), array[n, null], 'abc', '{"a": 1}', '[1,5)' from generate_series(1, 50) n;
alter table kinds alter column id restart with 5000; alter sequence kinds_id_seq as int;
create index "by half" on kinds (half desc nulls last) where n > 3;
create function twice(x int) returns int language sql immutable as 'select x * 2';
create function touch() returns trigger language plpgsql as $$ begin new.title := new.title || '!'; return new; end $$;
create trigger touch before insert on photos for each row execute function touch();
alter table photos enable row level security;
create policy all_of_it on photos using (true);
alter table kinds alter column t set statistics 500, alter column b set storage external;
comment on column photos.title is 'its title'; comment on sequence "Odd Name" is 'odd'; comment on function twice(int) is 'doubles'; comment on type mood is 'moods';
comment on index "by half" is 'half';
grant usage on schema shard_00001 to pg_database_owner; alter table kinds owner to pg_database_owner; alter function twice(int) owner to pg_monitor; alter view glad owner to pg_monitor;
grant usage on sequence untouched to pg_monitor with grant option; revoke execute on function twice(int) from public; grant usage on type mood to pg_monitor;
grant all on "Bare Table" to pg_read_all_data;
create statistics owned on n, t from kinds; create statistics described on n, a from kinds; alter statistics owned owner to pg_monitor; comment on statistics described is 'n and a';
alter view glad alter title set default twice(4); alter sequence kinds_id_seq set unlogged; create index sums on kinds ((n + 1)); alter index sums alter column 1 set statistics 7;
create materialized view titles as select title from photos with no data; alter materialized view titles alter title set storage external, alter title set statistics 7, alter title set (n_distinct = 5), alter title set compression pglz, set (toast.vacuum_truncate = false);
grant usage on sequence kinds_id_seq to pg_monitor; revoke update, delete on kinds from pg_database_owner; revoke all on fast from current_user; grant select (n) on fast to current_user;
revoke all on sequence ahead from current_user; revoke execute on function fail() from current_user; revoke usage on type positive from public;
grant select on silent to pg_monitor with grant option; set role pg_monitor; grant select on shard_00001.silent to pg_read_all_data; reset role; grant select on silent to pg_read_all_data;`

// otherDefaults are default grants of a database, which what is made there has from the beginning.
const otherDefaults = `
alter default privileges revoke execute on functions from public; alter default privileges revoke usage on types from public;
alter default privileges grant usage on schemas to pg_read_all_stats; alter default privileges grant all on tables to pg_read_all_stats with grant option;
alter default privileges grant usage on sequences to public; alter default privileges revoke update on tables from current_user;`

// snapshots of what a schema holds, each a text.
var catalogs = map[string]string{
	"relations":     `select coalesce(string_agg(format('%s %s %s %s %s %s', relname, relkind, relreplident, reloptions, pg_get_userbyid(relowner), ` + granted("relacl", "case relkind when 'S' then 's' else 'r' end", "relowner") + `), E'\n' order by relname), '') from pg_class where relnamespace = 'shard_00001'::regnamespace and relkind <> 'i'`,
	"functions":     `select string_agg(format('%s %s %s', proname, pg_get_userbyid(proowner), ` + granted("proacl", "'f'", "proowner") + `), E'\n' order by proname) from pg_proc where pronamespace = 'shard_00001'::regnamespace`,
	"types":         `select string_agg(format('%s %s %s', typname, pg_get_userbyid(typowner), ` + granted("typacl", "'T'", "typowner") + `), E'\n' order by typname) from pg_type where typnamespace = 'shard_00001'::regnamespace and typrelid = 0 and typelem = 0`,
	"columns":       `select string_agg(format('%s %s %s %s %s %s %s', c.relname, attname, attstattarget, attstorage, attcompression, (select array_agg(x) from unnest(attoptions) x where x not like 'pg%'), pg_get_expr(adbin, adrelid)), E'\n' order by c.relname, attname) from pg_attribute a join pg_class c on c.oid = attrelid left join pg_attrdef on adrelid = attrelid and adnum = attnum where relnamespace = 'shard_00001'::regnamespace and attnum > 0 and not attisdropped`,
	"statistics":    `select string_agg(concat_ws(' ', pg_get_statisticsobjdef(oid), stxowner::regrole), E'\n' order by stxname) from pg_statistic_ext where stxnamespace = 'shard_00001'::regnamespace`,
	"comments":      `select string_agg(pg_describe_object(classoid, objoid, objsubid) || ': ' || description, E'\n' order by pg_describe_object(classoid, objoid, objsubid)) from pg_description where pg_describe_object(classoid, objoid, objsubid) ~ 'shard_00001'`,
	"sequences":     `select string_agg(format('%s %s %s %s %s %s %s %s', sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, last_value), E'\n' order by sequencename) from pg_sequences where schemaname = 'shard_00001' and sequencename <> 'next_id_seq'`,
	"column grants": `select string_agg(concat_ws(' ', relname, attname, attacl), E'\n' order by relname, attname) from pg_attribute join pg_class c on c.oid = attrelid where relnamespace = 'shard_00001'::regnamespace and attacl is not null`,
	"schema":        `select nspowner::regrole || ` + granted("nspacl", "'n'", "nspowner") + ` from pg_namespace where nspname = 'shard_00001'`,
	"policies":      `select string_agg(policyname || tablename, ',') from pg_policies where schemaname = 'shard_00001'`,
	"bare":          `select count(*) || sum(hashtext(b::text))::text from shard_00001."Bare Table" b`,
	"unlogged":      `select string_agg(relname || relpersistence::text, ',' order by relname) || (select sum(n) + sum(half) from shard_00001.fast) || (select max(n) from shard_00001.refers) from pg_class where relnamespace = 'shard_00001'::regnamespace and relkind in ('r', 'S')`,
	"hollow":        `select count(*)::text from shard_00001.hollow`,
	"lost":          `select count(*) || sum(hashtext(l::text))::text from shard_00001.lost l`,
	"toast":         `select string_agg(concat(c.relname, t.reloptions), ',' order by c.relname) from pg_class c join pg_class t on t.oid = c.reltoastrelid where c.relnamespace = 'shard_00001'::regnamespace and c.relname <> 'shrunk' and t.reloptions is not null`,
	"kinds":         `select count(*) || sum(hashtext(k::text))::text from shard_00001.kinds k`,
	"photos":        `select count(*) || sum(hashtext(p::text))::text from shard_00001.photos p`,
}

// granted is what roles may do, also where nothing was ever granted.
func granted(acl, kind, owner string) string {
	return fmt.Sprintf(`(select string_agg(distinct concat_ws(' ', grantee::regrole, privilege_type, is_grantable), ', ') from aclexplode(coalesce(%s, acldefault((%s)::"char", %s))))`, acl, kind, owner)
}

// What a shard holds arrives as it was: owners, grants, comments, settings, sequences of any name, tables without a key.
// Tables without one are written to and changed while they move, and have the replica identity they had on both hosts.
func TestArrives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+everything)
	b.exec(1, otherDefaults)
	b.interrupted("copy: copied")
	b.exec(0, `update shard_00001."Bare Table" set what = 'other' where n = 3; delete from shard_00001."Bare Table" where n = 4; delete from shard_00001.silent where n = 4; update shard_00001.lost set t = 'other' where n = 4`)
	before := map[string]string{}
	for what, query := range catalogs {
		before[what] = strings.NewReplacer(`Bare Table r f`, `Bare Table r d`, `deferred r f`, `deferred r d`, `hollow r f`, `hollow r d`, `lost r f`, `lost r n`, `{{.schema}} r f`, `{{.schema}} r d`, `silent r f`, `silent r n`).Replace(b.text(0, query))
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	for what, query := range catalogs {
		b.equal(what, b.text(1, query), before[what])
	}
	b.equal("materialised views", b.text(1, `set search_path = shard_00001; select concat_ws(' ', a.n = 2 * c.n, c.n = (select count(*) from photos), f.n) from a_reader a, counted c, fastest f`), "t t 50")
	b.equal("one without rows", b.text(1, `select relispopulated from pg_class where oid = 'shard_00001.unfilled'::regclass`), "f")
	b.equal("odd", b.text(1, `select nextval('shard_00001."Odd Name"')`), "60")
	b.equal("first values", b.text(1, `set search_path = shard_00001; select concat_ws(' ', nextval('untouched'), nextval('ahead'), nextval('behind'), nextval('falling'))`),
		"5 1000 50 -1000")
	b.equal("an identity's type", b.text(1, `select format_type(seqtypid, null) from pg_sequence where seqrelid = 'shard_00001.kinds_id_seq'::regclass`), "integer")
	b.equal("an identity that was restarted", b.text(1, `insert into shard_00001.kinds (n) values (1) returning id`), "5000")
	b.equal("identities left", b.text(0, `select string_agg(relname || relreplident::text, ',' order by relname) from pg_class where relname in ('Bare Table', 'lost', 'silent') and relkind = 'r'`), "Bare Tabled,lostn,silentn")
	b.clean()
}

// Owners and grants that change while a shard moves are those of its new host, too.
func TestRightsChangeMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`set search_path = shard_00001; create function twice(x int) returns int language sql as 'select x * 2'; create sequence spare;
		grant select on photos to pg_monitor; grant update (title) on photos to pg_monitor with grant option; grant usage on sequence spare to pg_monitor;
		alter default privileges in schema shard_00001 grant select on tables to pg_monitor`)
	b.interrupted("copy: copied")
	b.exec(0, `set search_path = shard_00001; revoke all on photos from pg_monitor; grant insert on photos to pg_read_all_data; grant select (photo) on likes to public;
		grant all on sequence next_id_seq to pg_monitor; alter table events owner to pg_monitor; revoke execute on function twice(int) from public; grant create on schema shard_00001 to pg_monitor;
		alter default privileges in schema shard_00001 revoke select on tables from pg_monitor; alter default privileges in schema shard_00001 grant usage on sequences to public`)
	rights := rightsQueries()
	before := map[string]string{}
	for what, query := range rights {
		before[what] = b.text(0, query)
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	for what, query := range rights {
		b.equal(what, b.text(1, query), before[what])
	}
	b.clean()
}

// rightsQueries ask for all owners and grants of shard 1.
func rightsQueries() map[string]string {
	rights := map[string]string{
		"columns":  `select string_agg(format('%s.%s %s', attrelid::regclass, attname, attacl), E'\n' order by attrelid, attname) from pg_attribute join pg_class c on c.oid = attrelid where relnamespace = 'shard_00001'::regnamespace and attacl is not null`,
		"schema":   `select concat(nspowner::regrole, ' ', ` + granted("nspacl", "'n'", "nspowner") + `) from pg_namespace where nspname = 'shard_00001'`,
		"defaults": `select string_agg(concat(defaclobjtype, defaclacl), ',' order by defaclobjtype) from pg_default_acl where defaclnamespace = 'shard_00001'::regnamespace`,
	}
	for _, what := range []string{"relations", "functions", "types"} {
		rights[what] = catalogs[what]
	}
	return rights
}

// A move that is taken back gives tables without a key the replica identity that they had.
func TestIdentitiesAfterAbort(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `create table shard_00001.bare (n int)`)
	b.interrupted("publish: identified")
	const identity = `select relreplident from pg_class where oid = 'shard_00001.bare'::regclass`
	b.equal("while it moves", b.text(0, identity), "f")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("after the abort", b.text(0, identity), "d")
	b.clean()
}

// All that is known to keep a shard from moving is said at once, by name.
func TestChecks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `
		create unlogged table shard_00001.fast (t text); insert into shard_00001.fast select repeat('x', 1000) from generate_series(1, 20000);
		create table shard_00001.shapeless (j json); create domain shard_00001.route as jsonpath[];
		create table shard_00001.routed (r shard_00001.route); alter table shard_00001.routed replica identity full;
		create type shard_00001.part as (k int); create table shard_00001.parts of shard_00001.part;
		create table shard_00001.bare (n int)`)
	b.exec(1, `create schema shard_00001`)
	space := b.text(0, `select 'space_of_' || current_database()`) // all databases of the server have it
	b.exec(0, `do $$ begin execute format('alter database %I set allow_in_place_tablespaces = on', current_database()); end $$`)
	b.exec(0, `create tablespace `+space+` location ''`)
	defer func() { b.exec(0, `drop table shard_00001.elsewhere`); b.exec(0, `drop tablespace `+space) }()
	b.exec(0, `create table shard_00001.elsewhere (n int primary key) tablespace `+space)
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pg-a: unlogged tables and large objects take 22 MB, and are copied while callers wait: expected at most 16 MB; or --offline", "pg-a: table shard_00001.shapeless has no replica identity but its whole rows, and column j is of type json", "routed has no replica identity but its whole rows, and column r is of type shard_00001.route",
		"pg-b: schema shard_00001 is there already",
		"pg-a: shard 1 has CREATE TABLE shard_00001.parts OF shard_00001.part ()",
	} {
		if all := strings.Join(planned[0].Problems, "\n"); !strings.Contains(all, want) {
			t.Errorf("no problem %q in %s", want, all)
		}
	}
	if notes := strings.Join(planned[0].Notes, "\n"); !strings.Contains(notes, "pg-a: elsewhere is in tablespace "+space) || !strings.Contains(notes, "pg-a: table bare has no replica identity: while it moves it has REPLICA IDENTITY FULL") {
		t.Errorf("notes: %s", notes)
	}
	_, err = move.Run(t.Context(), b.cfg)
	var problems *move.CheckError
	if !errors.As(err, &problems) || len(problems.Problems) != len(planned[0].Problems) {
		t.Errorf("got %v", err)
	}
	b.equal("schemas", b.text(1, `select count(*) from pg_class where relnamespace = 'shard_00001'::regnamespace`), "0")
}

// A plan makes the shard on its target, for what no check knows of, and takes it back.
func TestPlanMakesTheShard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `create schema extra; create function extra.zero() returns int language sql as 'select 0'; create table shard_00001.counts (n int default extra.zero())`)
	plan := func() string {
		t.Helper()
		planned, err := move.Plan(t.Context(), b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(planned[0].Problems, "\n")
	}
	if problems := plan(); !strings.Contains(problems, `host pg-b: ERROR: schema "extra" does not exist`) {
		t.Errorf("problems: %s", problems)
	}
	b.exec(1, `create schema extra; create function extra.zero() returns int language sql as 'select 0'`)
	b.equal("problems", plan(), "")
	b.equal("schemas on the target", b.text(1, `select count(*) from pg_namespace where nspname = 'shard_00001'`), "0")
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	b.cfg.To = "pg-a"
	b.equal("problems of the way to a host with a fence", plan(), "")
	if err := b.try(0, `select * from shard_00001.photos`); err == nil || !strings.Contains(err.Error(), "shard 1 moved to pg-b at ") {
		t.Errorf("the fence: got %v", err)
	}
}

// What is outside the schema and refers to it, a trigger that fires for replicated rows and a publication are named. Nothing outside
// is dropped with the old schema.
func TestOutside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`
		create view public.all_photos as select * from shard_00001.photos;
		create function public.add() returns bigint begin atomic insert into shard_00001.photos (title) values ('x') returning id; end;
		create table public.tags (photo bigint references shard_00001.photos);
		create table public.heirs () inherits (shard_00001.photos);
		create table public.moods (m shard_00001.mood, at bigint default shard_00001.next_id());
		create table shard_00001.logged (n int primary key);
		create function shard_00001.f() returns trigger language plpgsql as 'begin return new; end';
		create trigger log before insert on shard_00001.logged for each row execute function shard_00001.f();
		alter table shard_00001.logged enable always trigger log;
		create function shard_00001.number(m shard_00001.mood) returns int language sql immutable as 'select 1'; create cast (shard_00001.mood as int) with function shard_00001.number;
		create function shard_00001.seen() returns event_trigger language plpgsql as 'begin end'; create event trigger seen on ddl_command_end when tag in ('CREATE CAST') execute function shard_00001.seen();
		create statistics public.titles on title, mood from shard_00001.photos;
		create function shard_00001.same(a shard_00001.mood, b int) returns bool language sql as 'select true'; create operator public.== (leftarg = shard_00001.mood, rightarg = int, function = shard_00001.same);
		create function shard_00001.weigh(m shard_00001.mood) returns int language sql as 'select 1'; create operator class public.weights for type shard_00001.mood using hash as function 1 shard_00001.weigh(shard_00001.mood);
		create function shard_00001.allow(o text[], c oid) returns bool language sql as 'select true'; create foreign data wrapper far validator shard_00001.allow;
		create publication feed for table shard_00001.photos; create publication everything for all tables`)
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(planned[0].Problems, "\n")
	for _, want := range []string{
		"rule _RETURN on view public.all_photos refers to table shard_00001.photos", "function public.add() refers to table shard_00001.photos",
		"constraint tags_photo_fkey on table public.tags refers to table shard_00001.photos", "table public.heirs refers to table shard_00001.photos",
		"column m of table public.moods refers to type shard_00001.mood", "default value for column at of table public.moods refers to function shard_00001.next_id()",
		"cast from shard_00001.mood to integer refers to type shard_00001.mood", "event trigger seen refers to function shard_00001.seen()",
		"statistics object public.titles refers to table shard_00001.photos", "operator public.==(shard_00001.mood,integer) refers to function shard_00001.same(shard_00001.mood,integer)",
		"operator class public.weights for access method hash refers to type shard_00001.mood", "of operator family public.weights for access method hash: shard_00001.weigh(shard_00001.mood) refers to function shard_00001.weigh(shard_00001.mood)",
		"foreign-data wrapper far refers to function shard_00001.allow(text[],oid)",
		"trigger log on logged fires for replicated rows, too (ENABLE ALWAYS)",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("no problem %q in\n%s", want, problems)
		}
	}
	if notes := strings.Join(planned[0].Notes, "\n"); !strings.Contains(notes, "publication feed has tables of the shard") || !strings.Contains(notes, "publication everything has tables of the shard") {
		t.Errorf("notes: %s", notes)
	}
	b.exec(0, `drop statistics public.titles; drop operator public.== (shard_00001.mood, int); drop operator family public.weights using hash; drop foreign data wrapper far`)
	b.exec(0, `drop cast (shard_00001.mood as int); drop event trigger seen; drop function public.add(); drop view public.all_photos; drop table public.tags, public.heirs, public.moods; alter table shard_00001.logged enable trigger log`)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	old := b.text(0, `select nspname from pg_namespace where nspname like 'shard_00001\_\_moved%'`)
	b.exec(0, `create view public.old as select * from `+old+`.photos`)
	if _, err := move.Clean(t.Context(), b.cfg.Map, shards.Set{}); err == nil || !strings.Contains(err.Error(), "rule _RETURN on view public.old refers to table "+old+".photos") {
		t.Errorf("got %v", err)
	}
	b.equal("old rows", b.text(0, `select count(*) > 0 from public.old`), "t")
	b.exec(0, `drop view public.old; drop publication feed; drop publication everything`)
	b.clean()
}

// What a role that is no superuser lacks is named.
func TestChecksOfRole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := move.Plan(t.Context(), b.cfg); err != nil { // it makes the ledgers
		t.Fatal(err)
	}
	u, err := url.Parse(b.m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	role := "mover_" + strings.Trim(u.Path, "/")
	c := b.m.Config()
	for i, h := range b.m.Hosts() {
		b.exec(i, fmt.Sprintf(`do $$ begin create role %[1]s login password 'x'; exception when duplicate_object then end $$; grant usage on schema kiloshard to %[1]s`, pgx.Identifier{role}.Sanitize()))
		t.Cleanup(func() {
			conn, err := pgx.Connect(context.Background(), h.ConnString())
			if err == nil {
				_, _ = conn.Exec(context.Background(), `drop owned by `+pgx.Identifier{role}.Sanitize())
				_, _ = conn.Exec(context.Background(), `drop role `+pgx.Identifier{role}.Sanitize()) // once both hosts' databases are rid of it
				_ = conn.Close(context.Background())
			}
		})
		u, err := url.Parse(h.ConnString())
		if err != nil {
			t.Fatal("a server's DSN is no URL")
		}
		u.User = url.UserPassword(role, "x")
		c.Hosts[i].DSN = u.String()
	}
	if b.cfg.Map, err = c.Map(); err != nil {
		t.Fatal(err)
	}
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(append(planned[0].Problems, planned[0].Notes...), "\n")
	for _, want := range []string{
		"pg-a: role %s may not make slots: expected REPLICATION", "pg-a: role %s may not make publications and schemas: expected CREATE on the database",
		"pg-a: role %s does not own schema shard_00001", "pg-a: role %s does not own shard_00001.photos: expected its owner",
		"pg-a: role %s may not read and set sequence next_id_seq: expected SELECT and UPDATE",
		"pg-a: role %s does not see how long the transactions of other roles last: expected pg_read_all_stats",
		"pg-b: role %s may not make subscriptions: expected a superuser", "pg-b: role %s may not make schemas: expected CREATE", "pg-b: role %s may not make what belongs to ",
	} {
		if want = fmt.Sprintf(want, role); !strings.Contains(strings.ReplaceAll(all, `"`, ""), want) {
			t.Errorf("nothing like %q in %s", want, all)
		}
	}
}

// What keeps a fence from being made is found before anything is copied.
func TestNoFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `do $$ begin execute (select 'create table shard_00001.wide (' || string_agg('c' || n || ' bool', ', ') || ')' from generate_series(1, 1600) n); end $$; alter table shard_00001.wide add primary key (c1)`)
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(planned[0].Problems, "\n"); !strings.Contains(all, "1600 columns") {
		t.Errorf("got %q", all)
	}
	var problems *move.CheckError
	if _, err := move.Run(t.Context(), b.cfg); !errors.As(err, &problems) {
		t.Errorf("got %v", err)
	}
}
