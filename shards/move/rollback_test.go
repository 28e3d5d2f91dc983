package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// movedWithWayBack is a bundle whose shard 1 has moved to pg-b, and can go back.
func movedWithWayBack(t *testing.T, before string) *bundle {
	t.Helper()
	b := setup(t)
	b.exec(0, fill+before)
	b.cfg.RollbackFor = time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	return b
}

// rowsOf1 is what of shard 1 must be the same on both hosts.
const rowsOf1 = `select concat_ws(' ', (select count(*) || ' ' || sum(hashtext(p::text)) from shard_00001.photos p), (select count(*) || ' ' || sum(hashtext(l::text)) from shard_00001.likes l),
	(select count(*) || ' ' || sum(hashtext(e::text)) from shard_00001.events e), (select string_agg(o::text, ',' order by o::text) from shard_00001.odd o),
	(select string_agg(w::text, ',' order by w::text) from shard_00001.whole w),
	(select string_agg(a::text, ',' order by a::text) from shard_00001.alike a))`

// Whatever was written on the new host comes back, of all types and in all ways, and nothing is left over.
func TestRollback(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, `
		create table odd ("a ""b" int generated always as identity primary key, long text, half numeric generated always as (length(long) / 2.0) stored, at timestamptz, list text[], bytes bytea);
		alter table odd alter long set storage external;
		insert into odd (long, at, list) values (repeat('x', 10000), '2026-01-02 03:04:05.678901+00', '{a,NULL,"b c"}');
		create table whole (a int, b text); alter table whole replica identity full; insert into whole values (1, 'x'), (1, 'x'), (2, null);
		create table alike (n numeric, c char(3)); alter table alike replica identity full; insert into alike values (1.0, 'x'), (1.00, 'x'), (1.000, '');
		create materialized view counted as select count(*) as n from photos;
		create sequence falling increment -2; create sequence round maxvalue 3 cycle; select nextval('falling'), nextval('round'); create sequence unused;
		create table gone (n int primary key); insert into gone values (1); create table gone_too (n int references gone, m serial primary key); insert into gone_too values (1);
		create function fail() returns trigger language plpgsql as $$ begin raise 'a trigger has run'; end $$;
		create trigger fail before insert on gone for each row execute function fail();`)
	for _, statement := range []string{`select * from shard_00001.photos`, `insert into shard_00001.events (what) values ('x')`, `select shard_00001.next_id()`, `select shard_00001.next_id('pg_class')`, `select * from shard_00001.next_ids(2)`} {
		if err := b.try(0, statement); err == nil || !strings.Contains(err.Error(), "shard 1 moved to pg-b at ") {
			t.Errorf("%s: got %v", statement, err)
		}
	}
	b.exec(1, `set search_path = shard_00001, pg_temp;
		insert into photos (title, mood, note) values (E'a\tb\\''', 'sad', '{"b": [1.50]}'), (null, null, null);
		select nextval('falling'), nextval('round'), nextval('round'), nextval('round');
		update photos set title = 'changed' where title = 'photo 7'; update odd set "a ""b" = default; update odd set at = now(), list = '{}', bytes = '\x00ff';
		insert into odd (long) values ('short'), (null); begin; delete from likes where photo in (select id from photos where title like 'photo 1%'); delete from photos where title like 'photo 1%'; commit;
		begin; insert into events (what) values ('undone'); rollback; update events set n = -n where n < 3;
		delete from whole where ctid = (select min(ctid) from whole); update whole set b = 'y' where a = 2; insert into whole values (null, null);
		delete from alike where n::text = '1.00'; update alike set c = 'y' where n::text = '1.000';
		truncate gone restart identity cascade; begin; insert into events (what) select 'many' from generate_series(1, 2000); savepoint s; delete from events; rollback to s; commit;`)
	want, id := b.text(1, rowsOf1), b.text(1, `select shard_00001.next_id()`)
	report, err := move.Rollback(t.Context(), b.cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	b.equal("rolled back", report.Done.String(), "1")
	b.equal("map", b.load().Host(1).Name, "pg-a")
	b.equal("rows", b.text(0, rowsOf1), want)
	b.equal("materialised view", b.text(0, `select n = (select count(*) from shard_00001.photos) from shard_00001.counted`), "t")
	b.equal("truncated", b.text(0, `select (select count(*) from shard_00001.gone) + (select count(*) from shard_00001.gone_too)`), "0")
	b.served("pg-a", "after the rollback")
	if next := b.text(0, `select shard_00001.next_id()`); next <= id {
		t.Errorf("ID %s after %s", next, id)
	}
	b.equal("serial", b.text(0, `insert into shard_00001.events (what) values ('y') returning n`), "2012")
	b.equal("sequences", b.text(0, `set search_path = shard_00001; select concat_ws(' ', nextval('falling'), nextval('round'), nextval('unused'))`), "-5 2 1")
	b.clean()
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) {
		t.Errorf("rolled back twice: %v", err)
	}
	b.exec(0, `update shard_00001.photos set title = 'changed again' where title = 'changed'`)
	b.cfg.Map, b.cfg.RollbackFor = b.load(), 0
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Errorf("another move: %v", err)
	}
	b.clean()
}

// Owners and grants that have changed since the move come back with the shard.
func TestRightsComeBack(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, `
		create function likes_of(p photos, mood, int default 1) returns bigint language sql as 'select count(*) from likes where photo = p.id';
		create procedure tell(m mood, out n int) language plpgsql as 'begin n := 1; end'; create sequence spare;
		grant select on photos to pg_monitor; alter default privileges in schema shard_00001 grant select on tables to pg_monitor;`)
	b.exec(1, `set search_path = shard_00001; revoke all on photos from pg_monitor; grant insert on photos to pg_read_all_data; grant select (photo) on likes to public;
		alter table events owner to pg_monitor; revoke execute on function likes_of(photos, mood, int) from public; grant execute on procedure tell(mood) to pg_monitor;
		alter procedure tell(mood) owner to pg_monitor; grant usage on type mood to pg_monitor with grant option; grant usage on schema shard_00001 to pg_monitor; grant usage on sequence spare to pg_monitor;
		alter default privileges in schema shard_00001 revoke select on tables from pg_monitor; alter default privileges in schema shard_00001 grant usage on sequences to public`)
	before := map[string]string{}
	for what, query := range rightsQueries() {
		before[what] = b.text(1, query)
	}
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	for what, query := range rightsQueries() {
		b.equal(what, b.text(0, query), before[what])
	}
	b.clean()
}

// A shard moves and is rolled back while services write: no call fails, and all rows are there once. The way back is kept as long.
func TestRollbackUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	c := b.crowd(t, returning, early, batch, begun, copied, reading(`select count(*) from events`))
	b.cfg.RollbackFor = time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error)
	go func() { kept <- move.Keep(ctx, keeping(b.cfg)) }()
	c.some("calls after the move")
	_, err := move.Rollback(t.Context(), b.cfg.Config)
	cancel()
	if kept := <-kept; err != nil || kept != nil {
		t.Fatal(err, kept)
	}
	c.some("calls after the rollback")
	c.end(b, 0)
	b.clean()
}

// A rollback waits for whom reads the slot of the way back, for as long as that takes, and says who it is.
func TestRollbackWaitsForReader(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.exec(1, `insert into shard_00001.events (what) values ('since')`)
	want := b.text(1, `select count(*) from shard_00001.events`)
	slot := b.text(1, `select slot_name from pg_replication_slots where slot_name like '%_back' and database = current_database()`)
	config := b.connect(1).Config().Config
	config.RuntimeParams["replication"] = "database"
	reader, err := pgconn.ConnectConfig(t.Context(), &config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close(context.Background()) }() // closed before, unless the test fails
	reader.Frontend().Send(&pgproto3.Query{String: `START_REPLICATION SLOT ` + slot + ` LOGICAL 0/0 (proto_version '1', publication_names '` + slot + `')`})
	if err := reader.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a reader of the slot", func() bool {
		return b.text(1, `select active from pg_replication_slots where slot_name = '`+slot+`'`) == "t"
	})
	tell, said := b.cfg.Events, ""
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if strings.HasPrefix(e.What, "waits for process ") {
			said = e.What
			_ = reader.Conn().Close() // its server's process ends
		}
	}
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	if who := fmt.Sprintf("waits for process %d (", reader.PID()); !strings.HasPrefix(said, who) {
		t.Errorf("said %q, expected %q", said, who)
	}
	b.equal("events", b.text(0, `select count(*) from shard_00001.events`), want)
	b.clean()
}

// A rollback that is interrupted goes on, or is taken back, after which it can be tried again.
func TestRollbackInterrupted(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	for _, at := range []string{"copy: caught up", "cutover: locked", "cutover: released", "fenced: reopened"} {
		b.exec(1, `insert into shard_00001.events (what) values ('before')`)
		want := b.text(1, `select count(*) from shard_00001.events`)
		stopped(t, b, at, rollback)
		_, err := move.Abort(t.Context(), b.cfg.Config)
		home := b.load().Host(1).Name
		if err == nil {
			b.equal("home after the abort at "+at, home, "pg-b")
			b.served("pg-b", at)
			continue
		}
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.cfg.Map = b.load()
		b.served("pg-a", at)
		b.equal("rows", b.text(0, `select count(*) from shard_00001.events`), want)
		b.clean()
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		b.cfg.Map = b.load()
	}
}

// stopped begins a move, or a rollback, whose mover goes away when something happens.
func stopped(t *testing.T, b *bundle, at string, run func(context.Context, move.RunConfig) (move.Report, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg, tell, there := b.cfg, b.cfg.Events, false
	cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == at {
			there = true
			cancel()
		}
	}
	if _, err := run(ctx, cfg); !there {
		t.Fatalf("it did not come to %s: %v", at, err)
	}
}

// What cannot go back is told so, and its slot is dropped.
func TestWayBackCloses(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	// cap: nothing is kept once it is passed
	b.exec(0, `update kiloshard.moves set back = back || '{"wal": 1}'`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) || !strings.Contains(err.Error(), "more than 1") {
		t.Errorf("past the cap: %v", err)
	}
	if err := move.Keep(t.Context(), keeping(b.cfg)); err != nil {
		t.Fatal(err)
	}
	b.clean()
	if all, err := move.Status(t.Context(), b.m); err != nil || !strings.Contains(all[0].Back.Closed, "more than 1") {
		t.Errorf("status: %v, %v", all[0].Back, err)
	}
	b.served("pg-b", "the end")
	b.cfg.To, b.cfg.Shards = "pg-b", shards.SetOf(0)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	b.exec(1, `alter table shard_00000.events add more int`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) || !strings.Contains(err.Error(), "were changed") {
		t.Errorf("after a change of the structure: %v", err)
	}
	b.exec(1, `insert into shard_00000.events (more) values (1)`)
	if err := move.Keep(t.Context(), keeping(b.cfg)); err != nil {
		t.Fatal(err)
	}
	b.clean()
}

// Standbys of the new host that sync slots have that of the way back. One that was promoted without all that the old host has closes the way.
func TestWayBackAfterFailover(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.equal("a failover slot", b.text(1, `select coalesce((to_jsonb(s) ->> 'failover')::boolean, false) = (current_setting('server_version_num')::int >= 170000) from pg_replication_slots s where database = current_database()`), "t")
	b.equal("timeline", b.text(0, `select back ->> 'timeline' from kiloshard.moves`), "1")
	b.exec(0, `update kiloshard.moves set back = back || '{"timeline": 2}'`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) || !strings.Contains(err.Error(), "a failover of pg-b has lost some that were applied before") {
		t.Errorf("got %v", err)
	}
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	if err := move.Keep(t.Context(), keeping(b.cfg)); err != nil {
		t.Fatal(err)
	}
	b.clean()
	b.served("pg-b", "the end")
}

// While shards still move, the way back of one that has moved is kept, and closed past its cap.
func TestKeepBeside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.RollbackFor, b.cfg.RollbackWAL = time.Hour, 1
	closed := make(chan struct{})
	beside := b.cfg
	beside.Events = func(e progress.Event) {
		if strings.Contains(e.What, "the way back to pg-a is closed: ") {
			close(closed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- move.KeepBeside(ctx, keeping(beside)) }()
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the way back keeps more WAL than it may, and is open")
	}
	select {
	case err := <-kept:
		t.Errorf("it has ended before it was to: %v", err)
	default:
	}
	cancel()
	if err := <-kept; err != nil {
		t.Error(err)
	}
	b.clean()
}

// What somebody has made in the fence of the old host, or outside on it, is found before anybody waits, and not dropped.
func TestFenceInTheWay(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.exec(0, `create table shard_00001.mine as select 7 as n`)
	refused := func(what string, do func(context.Context, move.RunConfig) (move.Report, error)) {
		t.Helper()
		if _, err := do(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
		b.served("pg-b", "after what was refused")
		if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
			t.Error(err)
		}
	}
	refused("table shard_00001.mine", rollback)
	b.equal("mine", b.text(0, `select n from shard_00001.mine`), "7")
	b.exec(0, `drop table shard_00001.mine; create view public.dash as select 1 as n from shard_00001.photos where false`)
	refused("view public.dash", rollback)
	if _, err := move.Clean(t.Context(), b.load(), shards.SetOf(1)); err == nil || !strings.Contains(err.Error(), "view public.dash") {
		t.Errorf("clean: got %v", err)
	}
	b.cfg.Map, b.cfg.RollbackFor, b.cfg.To = b.load(), 0, "pg-a"
	planned, err := move.Plan(t.Context(), b.cfg)
	if err != nil || len(planned) != 1 || !strings.Contains(strings.Join(planned[0].Problems, "; "), "view public.dash") {
		t.Errorf("plan: %v, %v", planned, err)
	}
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "view public.dash") {
		t.Errorf("run: %v", err)
	}
	b.exec(0, `drop view public.dash`)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Error(err)
	}
	b.served("pg-a", "after the move back")
}

// A way back that is over is named by a plan, which then has nothing against a move back, and closed by the next command, but for one on
// which the shard is going back.
func TestExpiredWayIsClosed(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.cfg.Map = b.load()
	b.exec(0, `update kiloshard.moves set back = back || '{"for": 1}'`)
	back := b.cfg
	back.To = "pg-a"
	if planned, err := move.Plan(t.Context(), back); err != nil || len(planned) != 1 || len(planned[0].Problems) > 0 || !strings.Contains(fmt.Sprint(planned[0].Notes), "way back") {
		t.Errorf("a plan: %+v, %v", planned, err)
	}
	b.exec(0, `insert into kiloshard.moves (id, shard, schema, side, source, target, step, who, began, stepped, returns)
		select '00000000', shard, schema, 'target', target, source, 'cutover', 'test', now(), now(), id from kiloshard.moves where side = 'source'`)
	if _, err := move.CloseLost(t.Context(), keeping(b.cfg), false); err != nil {
		t.Fatal(err)
	}
	b.equal("slots while the shard goes back", b.text(1, `select count(*) from pg_replication_slots where database = current_database()`), "1")
	b.exec(0, `delete from kiloshard.moves where id = '00000000'`)
	if lost, err := move.CloseLost(t.Context(), keeping(b.cfg), true); err != nil || lost.String() != "1" {
		t.Errorf("a dry run: %s, %v", lost, err)
	}
	if lost, err := move.CloseLost(t.Context(), keeping(b.cfg), false); err != nil || lost.String() != "1" {
		t.Errorf("got %s, %v", lost, err)
	}
	b.clean()
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) || !strings.Contains(err.Error(), "its time is over") {
		t.Errorf("a rollback: %v", err)
	}
	if _, err := move.Run(t.Context(), back); err != nil {
		t.Error(err)
	}
}
