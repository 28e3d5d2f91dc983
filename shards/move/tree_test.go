package move_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// tree has partitions of ranges, and of hashes within one, a list with a default and without a key, a foreign key from and to a partitioned table, and
// children with rows of the same keys as their parents'.
const tree = `set search_path = shard_00001, pg_temp; drop table photos cascade;
create table rooms (room int primary key, up int references rooms); insert into rooms select n, 1 from generate_series(1, 3) n;
create table photos (id bigint not null default next_id(), title text, at date not null default '2026-01-01'::date + (random() * 100)::int, room int references rooms default 1, primary key (id, at), check (id > 0)) partition by range (at);
create table photos_1 partition of photos for values from ('2026-01-01') to ('2026-02-01') partition by hash (id);
create table photos_1_0 partition of photos_1 for values with (modulus 2, remainder 0); create table photos_1_1 partition of photos_1 for values with (modulus 2, remainder 1);
create table photos_2 partition of photos (title default 'two') for values from ('2026-02-01') to ('2026-03-01') with (fillfactor = 70); alter index photos_2_pkey rename to second;
create table photos_rest partition of photos default; create index on photos (title); comment on table photos_2 is 'February'; grant select on photos_2 to public;
create table stars (photo bigint, at date, who int, primary key (photo, at, who), foreign key (photo, at) references photos on update cascade on delete cascade);
create table kinds (n int, k text, amount numeric) partition by list (k); create table kinds_a partition of kinds for values in ('a'); create table kinds_rest partition of kinds default;
create table animals (id int primary key, name text); create table cats (lives int, primary key (id)) inherits (animals); create table lions () inherits (cats);
create table numbered (n int generated always as identity primary key, s serial, t text); create table numbered_more (like numbered) inherits (numbered);
create function seen() returns trigger language plpgsql as 'begin return new; end'; create trigger seen after insert on photos for each row execute function shard_00001.seen();
insert into photos (title, room) select 'photo ' || n, 1 + n % 3 from generate_series(1, 1000) n; insert into stars select id, at, 1 from photos; insert into kinds select n, chr(97 + n % 3), n from generate_series(1, 30) n;
insert into animals select n, 'animal' from generate_series(1, 20) n; insert into cats select n, 'cat', 9 from generate_series(1, 20) n; insert into lions select n, 'lion', 1 from generate_series(1, 20) n;
insert into numbered (t) select 'x' from generate_series(1, 10); insert into numbered_more values (1, 1, 'more');`

// rowsOfTree is what of it must be the same on both hosts, in SCHEMA.
const rowsOfTree = `select string_agg(concat_ws(' ', t, count, sum), E'\n' order by t) from (
	select replace(tableoid::regclass::text, 'SCHEMA', ''), count(*), sum(hashtext(p::text)) from SCHEMA.photos p group by 1 union all select replace(tableoid::regclass::text, 'SCHEMA', ''), count(*), sum(hashtext(k::text)) from SCHEMA.kinds k group by 1 union all
	select replace(tableoid::regclass::text, 'SCHEMA', ''), count(*), sum(hashtext(a::text)) from SCHEMA.animals a group by 1 union all select replace(tableoid::regclass::text, 'SCHEMA', ''), count(*), sum(hashtext(n::text)) from SCHEMA.numbered n group by 1 union all
	select 'lives', sum(lives), 0 from SCHEMA.cats union all select 'stars', count(*), sum(hashtext(s::text)) from SCHEMA.stars s) r (t, count, sum)`

func (b *bundle) tree(host int, schema string) string {
	b.t.Helper()
	return b.text(host, strings.ReplaceAll(rowsOfTree, "SCHEMA", schema))
}

// changing writes to a tree: rows go from one partition to another, and of rows with the same key in a parent and a child one is changed.
func changing(ctx context.Context, s router.Shard) (int64, error) {
	for _, statement := range []string{
		`update photos set at = '2026-01-01'::date + (random() * 100)::int where id in (select id from photos where title like 'photo %' order by random() limit 3)`,
		`delete from photos where id in (select id from photos where title like 'photo %' order by random() limit 1)`,
		`insert into stars select id, at, 2 from photos where title like 'photo %' order by random() limit 1 on conflict do nothing`,
		`update kinds set k = chr(97 + (random() * 3)::int), amount = amount + 0.10 where n = 1 + (random() * 29)::int`,
		`insert into kinds values (100, 'b', 1.0), (101, 'a', 1.0), (101, 'a', 1.0)`, `delete from only kinds_a where n = 101`, `delete from kinds where n > 99`,
		`update only animals set name = name || 'x' where id = 1 + (random() * 19)::int`, `update only cats set lives = lives - 1 where id = 1 + (random() * 19)::int`,
		`update animals set name = 'one' where id = 3`, `delete from only lions where id = 1 + (random() * 19)::int`, `insert into numbered (t) values ('y')`,
	} {
		if _, err := s.Exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// A shard with partitions and children moves while services write, and back.
func TestTree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+tree+`alter table kinds_a replica identity full; alter table kinds_rest replica identity full; alter table lions replica identity full; alter table numbered_more replica identity full`)
	was := treeOf(b, 0)
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil || len(planned[0].Problems) > 0 {
		t.Fatalf("%q, %v", planned[0].Problems, err)
	}
	c := b.crowd(t, returning, batch, begun, changing)
	b.cfg.RollbackFor = time.Hour
	b.cfg.Events = func(tell func(progress.Event)) func(progress.Event) {
		return func(e progress.Event) {
			if tell(e); e.Kind == progress.Subscribed { // a TRUNCATE of a parent is one of its children
				b.exec(0, `truncate shard_00001.animals, shard_00001.kinds; insert into shard_00001.lions values (1, 'late', 1); insert into shard_00001.kinds values (1, 'a', 1)`)
			}
		}
	}(b.cfg.Events)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	c.some("calls after the move")
	b.equal("tree", treeOf(b, 1), was)
	b.cfg.Map = b.load()
	if report, err := move.Verify(t.Context(), b.cfg.Config); err != nil || report.Done.String() != "1" {
		t.Errorf("got %s, %v", report.Done, err)
	}
	b.exec(1, `truncate shard_00001.cats; insert into shard_00001.animals values (2, 'late'); insert into shard_00001.cats values (2, 'late', 1), (3, 'late', 2); update only shard_00001.animals set name = 'only' where id = 2`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	c.some("calls after the rollback")
	b.equal("tree after the rollback", treeOf(b, 0), was)
	c.end(b, 0)
	b.clean()
}

// treeOf is what the catalogs say of partitions and children of shard 1.
func treeOf(b *bundle, host int) string {
	return b.text(host, `set search_path = shard_00001; select concat_ws(E'\n',
		(select string_agg(concat_ws(' ', inhrelid::regclass, inhparent::regclass, pg_get_expr(c.relpartbound, c.oid)), E'\n' order by inhrelid::regclass::text) from pg_inherits join pg_class c on c.oid = inhrelid where c.relnamespace = 'shard_00001'::regnamespace),
		(select string_agg(concat_ws(' ', conrelid::regclass, conname, conislocal, coninhcount, convalidated), E'\n' order by conrelid::regclass::text, conname, confrelid::regclass::text) from pg_constraint where connamespace = 'shard_00001'::regnamespace and contype <> 'n'),
		(select string_agg(concat_ws(' ', attrelid::regclass, attname, attislocal, attinhcount, attnotnull), E'\n' order by attrelid::regclass::text, attnum) from pg_attribute join pg_class c on c.oid = attrelid where c.relnamespace = 'shard_00001'::regnamespace and relkind in ('r', 'p') and attnum > 0))`)
}

// A shard whose partitions and children have no keys of their own moves while services write.
func TestTreeWithoutKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+tree)
	was := treeOf(b, 0)
	c := b.crowd(t, returning, changing)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	c.some("calls after the move")
	b.equal("tree", treeOf(b, 1), was)
	c.end(b, 1)
	b.clean()
}

// The target has the rows that the source had when it was fenced, in each table, also of unlogged ones and offline.
func TestTreeIsCopied(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill+tree+`create unlogged table photos_3 partition of photos for values from ('2025-01-01') to ('2025-02-01'); insert into photos (title, at) values ('unlogged', '2025-01-02');
			create materialized view titles as select max(title) from photos; alter table photos add constraint "not x" check (title <> 'photo x') not valid; alter table photos_2 validate constraint "not x";`)
		b.cfg.Offline = offline
		want := b.tree(0, "shard_00001")
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		b.equal("rows", b.tree(1, "shard_00001"), want)
		b.equal("rows behind the fence", b.tree(0, b.text(0, `select nspname from pg_namespace where nspname ~ '^shard_00001__moved'`)), want)
		b.equal("materialised view", b.text(1, `select * from shard_00001.titles`), "unlogged")
		b.clean()
	}
}

// A partition that is attached or detached while a cutover waits is seen.
func TestTreeChangedWhileCutoverWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+tree+`create table later_by_hand_0 (like photos including all, foreign key (room) references rooms, check (at >= '2027-01-01' and at < '2027-02-01'));`)
	b.copied(false)
	b.foundAndUndone([][2]string{
		{`alter table shard_00001.photos attach partition shard_00001.later_by_hand for values from ('2027-01-01') to ('2027-02-01')`, `alter table shard_00001.photos detach partition shard_00001.later_by_hand`},
		{`create table shard_00001.by_hand partition of shard_00001.kinds for values in ('z')`, `drop table shard_00001.by_hand`},
		{`create table shard_00001.by_hand () inherits (shard_00001.animals)`, `drop table shard_00001.by_hand`},
	}, func(change string) (wait func()) { b.afterWait(0, change); return func() {} })
}

// Until the source is fenced the copy takes no writes by its partitioned tables.
func TestTreeIsGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+tree)
	b.copied(false)
	for _, statement := range []string{`insert into shard_00001.photos (title) values ('x')`, `insert into shard_00001.kinds values (1, 'a', 1)`, `truncate shard_00001.kinds`, `delete from shard_00001.animals`} {
		if err := b.try(1, statement); err == nil || !strings.Contains(err.Error(), "KSM0") && !strings.Contains(err.Error(), "arriv") {
			t.Errorf("%s: got %v", statement, err)
		}
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.exec(1, `insert into shard_00001.photos (title) values ('x')`)
	b.clean()
}

// A row may belong to another partition on the target, which takes it by no name of a partition: such a shard stays where it is.
func TestTreeHashedByOIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create type kind as enum ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'); create table hashed (k kind) partition by hash (k);
		create table hashed_0 partition of hashed for values with (modulus 2, remainder 0); create table hashed_1 partition of hashed for values with (modulus 2, remainder 1);
		insert into hashed select unnest(enum_range(null::kind))`)
	for _, offline := range []bool{false, true} {
		b.cfg.Offline = offline
		_, err := move.Run(t.Context(), b.cfg)
		var problems *move.CheckError
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), "pg-a: partitioned table shard_00001.hashed: the HASH of column k depends on OIDs") {
			t.Errorf("got %v", err)
		}
	}
	b.clean()
}

// A partition or a child in another schema keeps the shard where it is.
func TestTreeOutside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+tree+`create table public.photos_old partition of photos for values from ('2020-01-01') to ('2021-01-01'); create table public.dogs () inherits (animals);
		create table public.shared (s int); create table shared_here () inherits (public.shared);`)
	_, err := move.Run(t.Context(), b.cfg)
	var problems *move.CheckError
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"table public.photos_old refers to table shard_00001.photos", "table public.dogs refers to table shard_00001.animals", "CREATE TABLE shard_00001.shared_here () INHERITS (public.shared) /* its parent or child outside the schema: public.shared */"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
