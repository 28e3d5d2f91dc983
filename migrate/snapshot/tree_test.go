package snapshot_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
)

// TestTree takes shards with partitions and child tables by a snapshot to where a migration took the donor.
func TestTree(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, migration string }{
		{"partitions", `create table m (id bigint default next_id(), at timestamptz not null, note text default 'none', primary key (id, at), check (note <> '')) partition by range (at);
			create table m_2 partition of m (note default 'two', check (at is not null)) for values from ('2026-02-01') to ('2026-03-01') with (fillfactor = 70);
			create table m_1 partition of m for values from ('2026-01-01') to ('2026-02-01') partition by hash (id);
			create table m_1_0 partition of m_1 for values with (modulus 2, remainder 0); create table m_1_1 partition of m_1 for values with (modulus 2, remainder 1);
			create table m_rest partition of m default; create index on m (note); create unique index m_at on m (at, id); alter table m_2 rename constraint m_2_pkey to "Second";
			create table later (note text not null, gone int, at timestamptz not null, id bigint not null, constraint m_note_check check (note <> '')); alter table later drop column gone;
			create index later_note on later (note); alter table m attach partition later for values from ('2026-05-01') to ('2026-06-01');
			alter table m alter note set storage external; alter table only m_2 alter note set statistics 7; comment on table m_2 is 'two'; comment on index m_note_idx is 'notes'`},
		{"lists and expressions", `create type kind as enum ('a', 'b', 'c'); create function parity(n int) returns int language sql immutable as 'select n % 2';
			create table p (gone int, n int, k kind, twice int generated always as (n * 2) stored) partition by list (k); alter table p drop column gone;
			create table p_ab partition of p for values in ('a', 'b') partition by list (parity(n)); create unlogged table p_odd partition of p_ab for values in (1);
			create table p_none partition of p for values in (null); create table "P rest" partition of p default;
			create table empty (n int primary key) partition by range (n)`},
		{"an index that not all partitions have", `create table p (n int not null) partition by range (n); create table p_1 partition of p for values from (1) to (2); create table p_2 partition of p for values from (2) to (3);
			create index p_n on only p (n); create index p_1_n on p_1 (n); alter index p_n attach partition p_1_n; alter table only p add constraint p_key unique (n); create unique index on p_2 (n)`},
		{"foreign keys", `create table a (id int, part int, primary key (id, part)) partition by list (part); create table a_1 partition of a for values in (1) partition by range (id);
			create table a_1_low partition of a_1 for values from (0) to (10); create table a_2 partition of a for values in (2);
			create table b (id int primary key, a int, part int, up int references b, foreign key (a, part) references a on delete cascade);
			create table c (b int, up int, part int, id int, primary key (id, part), foreign key (up, part) references c, constraint to_b foreign key (b) references b deferrable) partition by range (part);
			create table c_1 (b int, up int, part int not null, id int not null, constraint own foreign key (b) references b deferrable); alter table c attach partition c_1 for values from (1) to (2);
			create table c_2 partition of c for values from (2) to (3); alter table c add constraint to_a foreign key (id, part) references a; comment on constraint to_b on c_2 is 'to b'`},
		{"triggers and policies", `create function touch() returns trigger language plpgsql as 'begin return new; end';
			create table p (n int, owner text) partition by range (n); create table p_1 partition of p for values from (1) to (2) partition by range (n);
			create table p_1_1 partition of p_1 for values from (1) to (2); create table p_2 partition of p for values from (2) to (3);
			create trigger each after insert on p for each row execute function touch(); create trigger once after insert on p for each statement execute function touch();
			create constraint trigger late after update on p deferrable initially deferred for each row execute function touch();
			create trigger own before insert on p_2 for each row execute function touch(); alter table only p_1 disable trigger each; alter table p_2 disable trigger each; alter table p disable trigger late;
			alter table p enable row level security; alter table p_1_1 force row level security; create policy mine on p using (owner = current_user)`},
		{"sequences", `create table p (id bigserial, n int) partition by hash (id); create table p_0 partition of p for values with (modulus 1, remainder 0);
			create table q (id int not null, n int generated always as identity) partition by range (id); create table q_1 partition of q for values from (1) to (2);
			create table a (id int generated by default as identity primary key, s bigserial); create table b (n smallint generated always as identity) inherits (a)`},
		{"replica identities", `create table p (id int not null, n int not null, unique (id)) partition by range (id); create table p_1 partition of p for values from (1) to (2); create unique index p_1_n on p_1 (n);
			alter table p replica identity using index p_id_key; alter table p_1 replica identity using index p_1_n; create table p_2 partition of p for values from (2) to (3); alter table p_2 replica identity full`},
		{"children", `create table a (id int primary key, name text not null default 'a', check (id > 0), constraint own check (id < 100)); create table other (name text not null, more int);
			create table b (b int, name text default 'b', constraint own check (id < 100)) inherits (a) with (fillfactor = 60); create table c (id int default 7) inherits (b, other);
			alter table a add column late date default '2026-01-01'; alter table b add column later int not null default 5; alter table a add constraint last check (id <> 50);
			alter table only a add constraint alone check (id <> 60) no inherit; alter table c alter late drop default; alter table c alter name set default 'c'; alter table b alter name set storage external;
			create table taken (name text not null, id int not null, late date, own text, constraint own check (id < 100), constraint last check (id <> 50), check (id > 0)); alter table taken rename constraint taken_id_check to a_id_check; alter table taken inherit a;
			alter table a drop column name; create index on b (id); create table grown (x int) inherits (other); alter table grown no inherit other; alter table c alter more set not null`},
		{"generated columns of children", `create table a (n int, twice int generated always as (n * 2) stored, "a*/b" text); create table b (more int) inherits (a); create table c () inherits (b)`},
		{"checks that were not validated", `create table a (n int); create table b () inherits (a); create table p (n int) partition by range (n); create table p_1 partition of p for values from (1) to (2);
			alter table a add constraint few check (n < 10) not valid; alter table b validate constraint few; alter table p add constraint few check (n < 10) not valid; alter table p_1 validate constraint few`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := migrated(t, test.migration, 12, 13)
			s, err := snapshot.Take(t.Context(), m, 13, 12)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context(), 2); err != nil {
				t.Fatalf("%v\n%s", err, s.Text())
			}
			if done, err := snapshot.Apply(t.Context(), snapshot.Config{Snapshot: s, Shards: shards.SetOf(2, 3)}); err != nil || done.Len() != 2 {
				t.Fatalf("done %s, %v", done, err)
			}
			report, err := drift.Look(t.Context(), drift.Config{Map: m, Shards: shards.SetOf(2, 3, 12, 13)})
			if err != nil || len(report.Groups) != 1 {
				t.Errorf("got %+v, %v, expected all shards to be alike", report, err)
			}
			if made, was := value(t, m, 2, treeQuery), value(t, m, 13, treeQuery); made != was {
				t.Errorf("made\n%s\nfrom\n%s", made, was)
			}
		})
	}
}

// treeQuery is what the catalogs say of partitions and children.
const treeQuery = `select concat_ws(E'\n',
	(select string_agg(concat_ws(' ', a.attrelid::regclass, a.attname, a.attislocal, a.attinhcount, a.attnotnull, a.attidentity), E'\n' order by a.attrelid::regclass::text, a.attname) from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = current_schema::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped),
	(select string_agg(concat_ws(' ', conrelid::regclass, conname, contype, conislocal, coninhcount, convalidated, (select conname from pg_constraint where oid = c.conparentid)), E'\n' order by conrelid::regclass::text, conname, confrelid::regclass::text)
		from pg_constraint c where connamespace = current_schema::regnamespace and contype <> 'n' and not exists (select from pg_constraint p where p.oid = c.conparentid and p.conrelid = c.conrelid)),
	(select count(*) from pg_constraint where connamespace = current_schema::regnamespace),
	(select string_agg(concat_ws(' ', inhrelid::regclass, inhparent::regclass, pg_get_expr(c.relpartbound, c.oid)), E'\n' order by inhrelid::regclass::text, inhseqno) from pg_inherits join pg_class c on c.oid = inhrelid where c.relnamespace = current_schema::regnamespace),
	(select string_agg(concat_ws(' ', indexrelid::regclass, indisvalid), E'\n' order by indexrelid::regclass::text) from pg_index join pg_class c on c.oid = indexrelid where c.relnamespace = current_schema::regnamespace),
	(select string_agg(concat_ws(' ', tgrelid::regclass, case when not tgisinternal then tgname end, tgenabled, tgparentid <> 0), E'\n' order by tgrelid::regclass::text, tgfoid::regprocedure::text, tgname) from pg_trigger join pg_class c on c.oid = tgrelid where c.relnamespace = current_schema::regnamespace))`

// TestTreeOutside has parents and children in another schema, of which a shard made from a snapshot would have none.
func TestTreeOutside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, migration, by, want string }{
		{"a child", "create table a (id int)", "create table public.%s () inherits (a)", "CREATE TABLE shard_00013.a () /* its parent or child outside the schema: public.%s */"},
		{"a parent", "create table a (id int)", "create table public.%s (id int); alter table a inherit public.%s", "CREATE TABLE shard_00013.a () INHERITS (public.%s) /* its parent or child outside the schema: public.%s */"},
		{"a partition", "create table a (id int) partition by range (id)", "create table public.%s partition of a default", "PARTITION BY RANGE (id) /* its parent or child outside the schema: public.%s */"},
		{"a partition of another", "create table a (id int)", "create table public.%s (id int) partition by range (id); alter table public.%s attach partition a default", "CREATE TABLE shard_00013.a () /* its parent or child outside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := migrated(t, tt.migration, 13)
			value(t, m, 13, strings.ReplaceAll(tt.by, "%s", "other"))
			_, err := snapshot.Take(t.Context(), m, 13)
			var unknown *snapshot.UnknownError
			if want := strings.ReplaceAll(tt.want, "%s", "other"); !errors.As(err, &unknown) || !strings.Contains(unknown.Error(), want) {
				t.Errorf("got %v, expected an UnknownError about %s", err, want)
			}
		})
	}
}
