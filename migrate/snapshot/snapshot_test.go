package snapshot_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/lint"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
)

// TestSnapshot takes shards by a snapshot to where a migration took the donor.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, migration string }{
		{"tables", `create table users (id bigint primary key default next_id(), name varchar(40) not null collate "C", born date, unique (name, born));
			create unlogged table cache (k text, v bytea) with (fillfactor = 70); alter table cache alter v set storage external;
			create table kept (t text, n int not null) with (toast.vacuum_truncate = false); create unique index n on kept (n); alter table kept replica identity using index n; drop index n;
			create table shrunk (n int, t text) with (toast.vacuum_truncate = false); alter table shrunk drop column t`},
		{"foreign keys", `create table a (id int primary key); create table b (id int primary key, a int references a on delete cascade deferrable);
			alter table a add column b int references b initially deferred; alter table a add constraint c check (b > 0) not valid`},
		{"indexes", `create table a (id int, name text, at timestamptz); create index on a (name) where id > 100;
			create unique index a_lower on a (lower(name) desc nulls last, id) include (at) with (fillfactor = 50); create index on a using hash (name);
			create index i on a (id); alter table a cluster on i; create statistics st on id, name from a; comment on statistics st is 'both';
			create index sum on a ((id + 1), name, (id - 1)); alter index sum alter column 3 set statistics 7, alter column 1 set statistics 8`},
		{"types", `create type mood as enum ('sad', 'it''s ok'); create domain percent as int default 5 not null check (value between 0 and 100);
			create type pair as (x mood, y percent[]); create type minutes as range (subtype = int4);
			create table a (m mood default 'sad', ms mood[], p percent, q pair, qs pair[], r minutes)`},
		{"views", `create table a (id int, name text); create view b as select * from a; create view c as select b.id, a from b join a using (id);
			create view d with (security_barrier) as select 1 as one; create or replace view d with (security_barrier) as select count(*)::int as one from c;
			create materialized view e as select * from c; create unique index on e (id); create view f as select lower(name) as "Upper" from a;
			create function word() returns text language sql as $$ select 'word' $$; alter view f alter "Upper" set default word(); create view g as select "Upper" from f;
			create materialized view h as select name from a; create index on h (name); alter materialized view h alter name set storage external, alter name set statistics 0, alter name set (n_distinct = 5)`},
		{"a view that was there before what it needs", `create table a (id int); create view one as select 1 as n; create view two as select id as n from a;
			create or replace view one as select n from two`},
		{"functions", `create function double(n int) returns int language sql immutable as $$ select n * 2 $$;
			create table a (id int default double(3), twice int generated always as (double(5)) stored, check (double(id) > 0));
			create function later() returns bigint language sql as $$ select count(*) from a $$;
			create function rows_of(x a) returns text language plpgsql stable security definer set search_path = pg_catalog as $f$ begin return '$$;{{.schema}}'; end $f$;
			create function first() returns int begin atomic select min(id) from a; select 2; end;
			create table b (n int default first()); create index on a (double(id)); create procedure p(inout n int) language plpgsql as 'begin n := 1; end'`},
		{"defaults that name things without a schema", `create sequence s; create function next_name() returns text language sql as $$ select 'n' || nextval('s') $$;
			create table a (name text not null default next_name(), b varchar(40) default upper(next_name()) collate "C", c text default next_name()); alter table a alter c set storage external;
			create function first_name() returns text language sql as $$ select name from a limit 1 $$; alter table a add d text; alter table a alter d set default first_name()`},
		{"triggers", `create table a (id int, name text); create function touch() returns trigger language plpgsql as $$ begin return new; end $$;
			create trigger one before insert or update of name on a for each row when (new.id > 0) execute function touch();
			create constraint trigger two after insert on a deferrable initially deferred for each row execute function touch();
			create trigger three after delete on a referencing old table as gone for each statement execute function touch(); alter table a disable trigger one`},
		{"identities and sequences", `create sequence s increment 2 start 10 cache 5 cycle maxvalue 99; create table a (id int generated always as identity (start 5), b bigserial,
			c int default nextval('s'), d smallint generated by default as identity); alter sequence s owned by a.c; create unlogged table b (id bigserial);
			create unlogged table c (id int generated always as identity, also int generated always as identity); alter sequence c_id_seq set logged; alter sequence a_id_seq set unlogged;
			create table e (n smallint generated always as identity, m int generated by default as identity (start 7)); alter sequence e_n_seq as bigint; alter sequence e_m_seq as bigint maxvalue 5000000000 restart`},
		{"generated columns", `create table a (g int generated always as (a * 2 + b) stored, a int, b int); alter table a drop column g; alter table a add column h text generated always as (a::text) stored`},
		{"comments", `create table a (id int primary key check (id > 0)); create view v as select * from a; create function f(int) returns int language sql as 'select 1';
			create type t as enum ('x'); create domain d as int; comment on table a is 'it''s {{.schema}}'; comment on column a.id is 'id'; comment on constraint a_pkey on a is E'back\\slash';
			comment on view v is 'v'; comment on function f(int) is 'f'; comment on type t is 't'; comment on domain d is 'd'; comment on index a_pkey is 'i';
			comment on schema {{.schema}} is 'a shard'; comment on sequence s_seq is 's'`},
		{"exclusion", `create table a (during int4range, exclude using gist (during with &&) where (during is not null))`},
		{"policies and rules", `create table a (id int, owner text); create table b (id int); create rule quiet as on delete to a where old.id < 0 do also insert into b values (1);
			alter table a enable row level security; alter table a force row level security; alter table b replica identity full;
			create policy p on a for select to public using (exists (select from b where b.id = a.id)); create policy q on a as restrictive for insert with check (owner = current_user)`},
		{"odd names", `create table "Order ""by""" ("Select" int primary key, "a.b" text, "é" int); create index "I x" on "Order ""by""" ("a.b"); create type "T t" as enum ('a'); create view "V" as select "Select" from "Order ""by"""`},
		{"the number", `create table a (shard int default {{.shard}} check (shard = {{.shard}}), n int default 1); create table a_{{.shard}} (id int); create function f() returns int language sql as 'select {{.shard}}'`},
		{"nothing", `create table gone (id int); drop table gone`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name == "comments" {
				test.migration = "create sequence s_seq; " + test.migration
			}
			m := migrated(t, test.migration, 11, 12, 13)
			s, err := snapshot.Take(t.Context(), m, 13, 11)
			if err != nil {
				t.Fatal(err)
			}
			if s.Version() != 2 {
				t.Errorf("got version %d, expected 2", s.Version())
			}
			if err := s.Check(t.Context(), 2); err != nil {
				t.Fatalf("%v\n%s", err, s.Text())
			}
			rest, err := shards.ParseSet("0-10,14-15")
			if err != nil {
				t.Fatal(err)
			}
			done, err := snapshot.Apply(t.Context(), snapshot.Config{Snapshot: s, Shards: rest})
			if err != nil || done.Len() != 13 {
				t.Fatalf("done %s, %v", done, err)
			}
			report, err := drift.Look(t.Context(), drift.Config{Map: m})
			if err != nil || len(report.Groups) != 1 || report.Groups[0].Version != 2 || report.Groups[0].Shards.Len() != 16 {
				t.Errorf("got %+v, %v, expected all shards to be alike", report, err)
			}
		})
	}
}

// TestMarks has texts of a shard's own that look like marks: they stay what they are in shards made from a snapshot.
func TestMarks(t *testing.T) {
	t.Parallel()
	m := migrated(t, `create table a (id int primary key, name text default '{{"{{"}}.schema}} {{"{{"}}.shard}} {{"{{{{"}}"{{"{{"}}"}} {{"{"}}{{.schema}}} {{"{"}}{{.shard}}} {{"{{{"}}{{.schema}}}', "{{"{{"}}.schema}}" int);
		create table "{{"{{"}}.schema}}" (id int primary key); comment on table a is '{{"{{"}}.schema}}'`, 11, 12)
	s, err := snapshot.Take(t.Context(), m, 12, 11)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Apply(t.Context(), snapshot.Config{Snapshot: s, Shards: shards.SetOf(2)}); err != nil {
		t.Fatal(err)
	}
	const query = `insert into a values (1); select concat_ws(' ', name, obj_description('a'::regclass)) from a`
	want := `{{.schema}} {{.shard}} {{{{"{{"}} {shard_00002} {2} {{{shard_00002} {{.schema}}`
	if got := value(t, m, 2, query); got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if got := value(t, m, 2, `select "{{.schema}}" is null and (select count(*) = 0 from "{{.schema}}") from a`); got != "t" {
		t.Errorf("got %s, expected a column and a table with the name of a mark", got)
	}
}

// TestUnknown is what no snapshot can make, of which migrate plan warns.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, migration, want string }{
		{"an aggregate", "create aggregate total(int) (sfunc = int4pl, stype = int)", "/* aggregate shard_00013.total(integer): int4pl on integer, then - */"},
		{"an operator", "create operator === (leftarg = int, rightarg = int, function = int4eq)", "/* operator shard_00013.===(integer,integer) */"},
		{"a typed table", "create type t as (id int); create table a of t", "CREATE TABLE shard_00013.a OF shard_00013.t ()"},
		{"a base type", "create type base; create function base_in(cstring) returns base language internal immutable strict as 'textin'; create function base_out(base) returns cstring language internal immutable strict as 'textout'; create type base (input = base_in, output = base_out)", "/* type shard_00013.base */"},
		{"a collation", `create collation c from "C"`, "/* collation shard_00013.c */"},
		{"a conversion", "create conversion v for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8", "/* conversion shard_00013.v */"},
		{"an operator class", "create operator class k for type int using hash as operator 1 =", "operator class shard_00013.k for access method hash"},
		{"a text search configuration", "create text search configuration s (copy = simple); create text search dictionary y (template = simple)", "/* text search configuration shard_00013.s */; /* text search dictionary shard_00013.y */"},
		{"many", "do $$ begin for i in 10..20 loop execute format('create operator %s (leftarg = int, rightarg = int, function = int4eq)', repeat('=', i)); end loop; end $$", "; and 1 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			warnings, err := lint.Check(tt.migration, lint.Options{})
			if !slices.ContainsFunc(warnings, func(w lint.Warning) bool { return w.Kind == lint.Stays }) != (tt.name == "many") { // which has them in a DO block
				t.Errorf("got warnings %v, %v", warnings, err)
			}
			m := migrated(t, tt.migration, 13)
			_, err = snapshot.Take(t.Context(), m, 13)
			var unknown *snapshot.UnknownError
			if !errors.As(err, &unknown) || unknown.Donor != 13 || !strings.Contains(unknown.Error(), tt.want) {
				t.Errorf("got %v, expected an UnknownError about %s", err, tt.want)
			}
		})
	}
}

func TestCheckFindsWhatIsNotTheSame(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 13)
	s, err := snapshot.Take(t.Context(), m, 13)
	if err != nil {
		t.Fatal(err)
	}
	value(t, m, 2, "create table b (id int)")
	var different *snapshot.DifferenceError
	if err := s.Check(t.Context(), 2); !errors.As(err, &different) || !strings.Contains(different.Differences[0], "b ADD COLUMN id") {
		t.Errorf("got %v, expected a DifferenceError about table b", err)
	}
	value(t, m, 3, "create table a (id int)")
	var e *pgconn.PgError
	if err := s.Check(t.Context(), 3); !errors.As(err, &e) || e.Code != "42P07" {
		t.Errorf("got %v, expected the table to be there", err)
	}
	if got := value(t, m, 2, "select to_regclass('a') is null and to_regclass('schema_version') is null"); got != "t" {
		t.Error("something is left of a check")
	}
}

func TestTheNumberOfTheOnlyDonor(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (n int default 13, m int default {{.shard}})", 13, 4)
	if _, err := snapshot.Take(t.Context(), m, 13); !errors.Is(err, snapshot.ErrNumber) {
		t.Errorf("got %v, expected ErrNumber", err)
	}
	s, err := snapshot.Take(t.Context(), m, 4, 13)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), 5); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.Text(), "ADD COLUMN n integer DEFAULT 13 ") || !strings.Contains(s.Text(), "ADD COLUMN m integer DEFAULT {{.shard}} ") {
		t.Errorf("got %s", s.Text())
	}
}

func TestApplyOnlyFromVersion0(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 13, 5)
	s, err := snapshot.Take(t.Context(), m, 13)
	if err != nil {
		t.Fatal(err)
	}
	done, err := snapshot.Apply(t.Context(), snapshot.Config{Snapshot: s, Shards: shards.SetOf(4, 5, 6)})
	var partial *shards.PartialError
	var e *pgconn.PgError
	if !errors.As(err, &partial) || !errors.As(err, &e) || e.Code != "KSV01" || len(partial.Failed) != 1 || partial.Failed[0].Shard != 5 || done.String() != "4,6" {
		t.Errorf("done %s, %v, expected shard 5 to fail", done, err)
	}
	if got := value(t, m, 6, "select version from schema_version"); got != "2" {
		t.Errorf("got version %s, expected 2", got)
	}
}

// TestDonorOfTheMajority has somebody change shards by hand.
func TestDonorOfTheMajority(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 11, 12, 13, 14, 15)
	value(t, m, 15, "alter table a add column by_hand int")
	value(t, m, 11, "alter table a add column by_hand int")
	s, err := snapshot.Take(t.Context(), m, 11, 12, 13, 14, 15)
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Donor(); d.Shard < 12 || d.Shard > 14 || d.Alike != 3 || d.Of != 5 || strings.Contains(s.Text(), "by_hand") {
		t.Errorf("got the structure of %+v\n%s", d, s.Text())
	}
	var none *snapshot.NoMajorityError
	if _, err := snapshot.Take(t.Context(), m, 11, 12, 14, 15); !errors.As(err, &none) || len(none.Groups) != 2 {
		t.Errorf("two against two: got %v, expected a NoMajorityError", err)
	}
	value(t, m, 13, "create view v as select 1 as one")
	if _, err := snapshot.Take(t.Context(), m, 11, 12, 13, 14, 15); !errors.As(err, &none) || len(none.Groups) != 3 {
		t.Errorf("two, two and one: got %v, expected a NoMajorityError", err)
	}
}
