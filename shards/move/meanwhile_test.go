package move_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// afterWait makes a transaction that a cutover on a host waits for, and has statements run when it begins to wait, before the transaction
// ends.
func (b *bundle) afterWait(host int, statements string) {
	holder := b.connect(host)
	b.t.Cleanup(func() { _ = holder.Close(context.Background()) })
	if _, err := holder.Exec(b.t.Context(), `begin; select from shard_00001.events where n = 1 for update; select pg_sleep(0.5)`); err != nil {
		b.t.Fatal(err)
	}
	tell, done := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if done || e.Kind != progress.Waiting {
			return
		}
		done = true
		if err := b.try(host, statements); err != nil {
			b.t.Error(err)
		}
		if _, err := holder.Exec(b.t.Context(), `rollback`); err != nil {
			b.t.Error(err)
		}
	}
	b.t.Cleanup(func() {
		if !done {
			b.t.Error("the cutover did not wait")
		}
	})
}

// copied begins a move and leaves it before its cutover.
func (b *bundle) copied(offline bool) {
	if b.cfg.Offline = offline; offline {
		b.interrupted("schema: made")
	} else {
		b.interrupted("copy: copied")
	}
}

// What somebody changes by hand while a cutover waits for a transaction is seen before the shard is fenced.
func TestChangedWhileCutoverWaits(t *testing.T) {
	t.Parallel()
	for offline, changes := range map[bool][][2]string{
		false: {
			{`create index by_hand on shard_00001.photos (mood)`, `drop index shard_00001.by_hand`},
			{`comment on column shard_00001.likes.who is 'by_hand'`, `comment on column shard_00001.likes.who is null`},
			{`create table shard_00001.by_hand (n int primary key)`, `drop table shard_00001.by_hand`},
			{`create sequence shard_00001.by_hand`, `drop sequence shard_00001.by_hand`},
		},
		true: {
			{`alter table shard_00001.photos alter title set default 'by_hand'`, `alter table shard_00001.photos alter title drop default`},
			{`create function shard_00001.by_hand() returns int language sql as 'select 1'`, `drop function shard_00001.by_hand()`},
			{`drop view shard_00001.glad; create view shard_00001.glad as select 1 as by_hand`, glad},
			{`alter type shard_00001.mood add value 'by_hand'`, ``}, // the last one: nothing undoes it
		},
	} {
		b := setup(t)
		b.exec(0, fill)
		b.copied(offline)
		b.foundAndUndone(changes, func(change string) (wait func()) { b.afterWait(0, change); return func() {} })
	}
}

// glad makes the view as the migration does.
const glad = `drop view shard_00001.glad; create view shard_00001.glad as select * from shard_00001.photos where mood = 'glad'`

// foundAndUndone resumes a move once for each change, which begin makes while the move is under way, and checks that the shard stays because of that
// change. Each is undone before the next.
func (b *bundle) foundAndUndone(changes [][2]string, begin func(change string) (wait func())) {
	b.t.Helper()
	cfg := b.cfg
	for i, change := range changes {
		name := fmt.Sprintf("by_hand_%d", i)
		does, undoes := strings.ReplaceAll(change[0], "by_hand", name), strings.ReplaceAll(change[1], "by_hand", name)
		b.cfg = cfg
		wait := begin(does)
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute) // a move that never compares again tries for ever
		_, err := move.Resume(ctx, b.cfg.Config)
		cancel()
		wait()
		var structure *move.StructureError
		if !errors.As(err, &structure) {
			b.t.Fatalf("%s: got %v", does, err)
		} else if all := strings.Join(structure.Differences, "; "); !strings.Contains(all, name) || strings.Count(all, "by_hand") != strings.Count(all, name) {
			b.t.Errorf("%s: got %s", does, all)
		}
		b.served("pg-a", "after "+does)
		b.exec(0, undoes)
	}
	if _, err := move.Abort(b.t.Context(), cfg.Config); err != nil {
		b.t.Fatal(err)
	}
	b.clean()
}

// Grants that are made, views that are refreshed, and tables that are emptied, while a cutover waits, are no reason not to move.
func TestGrantedWhileCutoverWaits(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill+`create materialized view counted as select count(*) as n from likes`)
		b.copied(offline)
		b.afterWait(0, `grant update on shard_00001.photos to pg_monitor; grant execute on function shard_00001.next_id() to pg_monitor; truncate shard_00001.likes; refresh materialized view shard_00001.counted`)
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.equal("grants", b.text(1, `select concat_ws(' ', has_table_privilege('pg_monitor', 'shard_00001.photos', 'update'), (select proacl::text ~ 'pg_monitor' from pg_proc where oid = 'shard_00001.next_id()'::regprocedure))`), "t t")
		b.equal("likes", b.text(1, `select concat_ws(' ', (select count(*) from shard_00001.likes), n) from shard_00001.counted`), "0 0")
		b.clean()
	}
}

// A shard that is changed while its way back waits for a transaction stays.
func TestChangedWhileRollbackWaits(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.afterWait(1, `create index by_hand on shard_00001.photos (mood)`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) {
		t.Errorf("got %v", err)
	}
	b.served("pg-b", "after the rollback that failed")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.exec(1, `drop index shard_00001.by_hand`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
	b.clean()
}

// whileFencing has the transaction that fences shard 1 on a host wait, when little but its commit is left to do, until another session has
// run statements; what follows in later runs after that. It returns a function that waits for the end of all.
func (b *bundle) whileFencing(host int, statements string, later ...string) (wait func()) {
	b.cfg.MaxPause = time.Minute
	b.exec(host, `
		create or replace function public.wait_for_change() returns event_trigger language plpgsql as $$ begin
			perform pg_advisory_xact_lock(1, 1);
			while exists (select from pg_event_trigger) and not exists (select from pg_locks where (classid, objid) = (1, 2) and database = (select oid from pg_database where datname = current_database())) loop
				-- Some releases, such as 17.12, lock a schema that gets another name: the other session waits for that until this one gives up, as after its longest pause.
				if exists (select from pg_locks where not granted and classid = 'pg_namespace'::regclass and database = (select oid from pg_database where datname = current_database())) then raise lock_not_available; end if;
				perform pg_sleep(0.001);
			end loop;
		end $$;
		create event trigger wait_for_change on ddl_command_end when tag in ('ALTER SCHEMA') execute function public.wait_for_change()`)
	const fencing = `do $$ begin while not exists (select from pg_locks where (classid, objid) = (1, 1) and database = (select oid from pg_database where datname = current_database())) loop perform pg_sleep(0.001); end loop; end $$`
	all := slices.Concat([]string{fencing, statements, `select pg_advisory_lock(1, 2)`, `select pg_advisory_lock(1, 1)`}, later, []string{`drop event trigger wait_for_change`})
	other, ended := b.connect(host), make(chan error, 1)
	go func() {
		defer func() { _ = other.Close(context.Background()) }()
		for _, s := range all {
			if _, err := other.Exec(b.t.Context(), s); err != nil {
				ended <- fmt.Errorf("%s: %w", s, err)
				return
			}
		}
		ended <- nil
	}()
	return func() {
		b.t.Helper()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	}
}

// What somebody makes or changes by hand between the last look under the locks and the commit of the fence is seen before the map changes.
func TestChangedWhileFencing(t *testing.T) {
	t.Parallel()
	for offline, changes := range map[bool][][2]string{
		false: {
			{`create table shard_00001.by_hand as select 1 as n`, `drop table shard_00001.by_hand`},
			{`create sequence shard_00001.by_hand`, `drop sequence shard_00001.by_hand`},
			{`create view shard_00001.by_hand as select 1 as n`, `drop view shard_00001.by_hand`},
		},
		true: {
			{`create function shard_00001.by_hand() returns int language sql as 'select 1'`, `drop function shard_00001.by_hand()`},
			{`create type shard_00001.by_hand as enum ('a')`, `drop type shard_00001.by_hand`},
			{`comment on type shard_00001.mood is 'by_hand'`, `comment on type shard_00001.mood is null`},
		},
	} {
		b := setup(t)
		b.exec(0, fill)
		b.copied(offline)
		b.foundAndUndone(changes, func(change string) (wait func()) { return b.whileFencing(0, change) })
	}
}

// A table that is about to be made by a transaction which is open when the shard is fenced keeps it from moving until that has ended, without
// a fence that goes up and down meanwhile.
func TestMadeWhileFencing(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill)
		b.copied(offline)
		locked, tell := 0, b.cfg.Events
		b.cfg.Events = func(e progress.Event) {
			tell(e)
			if e.Kind == progress.Locked {
				locked++
			}
		}
		wait := b.whileFencing(0, `begin; create table shard_00001.by_hand as select 1 as n`, `select pg_sleep(1.5)`, `commit`)
		_, err := move.Resume(t.Context(), b.cfg.Config)
		wait()
		var structure *move.StructureError
		if !errors.As(err, &structure) || !strings.Contains(err.Error(), "by_hand") {
			t.Errorf("got %v", err)
		}
		if locked > 6 {
			t.Errorf("writers were kept waiting %d times", locked)
		}
		b.equal("by hand", b.text(0, `select n from shard_00001.by_hand`), "1")
		if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.clean()
	}
}

// A transaction that has made a table in the shard is waited for as long as there is patience.
func TestMakerIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.copied(false)
	open := b.connect(0)
	defer func() { _ = open.Close(context.Background()) }()
	if _, err := open.Exec(t.Context(), `begin; create table shard_00001.by_hand (n int); select pg_sleep(0.5)`); err != nil {
		t.Fatal(err)
	}
	b.cfg.RetryLimit = time.Second
	want := fmt.Sprintf("a transaction of process %d, idle in transaction holds a lock in the shard", open.PgConn().PID())
	if _, err := move.Resume(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := open.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.served("pg-a", "after the patience")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
}

// Grants that are made then are made on the new host as well.
func TestGrantedWhileFencing(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill)
		b.copied(offline)
		wait := b.whileFencing(0, `revoke execute on function shard_00001.next_id() from public; grant execute on function shard_00001.next_id() to pg_monitor`)
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		wait()
		b.equal("grants", b.text(1, `select string_agg(has_function_privilege(r, 'shard_00001.next_id()', 'execute')::text, ' ') from unnest('{pg_monitor,public}'::text[]) r`), "true false")
		b.clean()
	}
}

// What somebody has made in the old schema since is named, and is not dropped with it; nor is a table that somebody has made in the fence.
func TestCleanNamesNewcomers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.exec(0, `do $$ begin execute (select format('create function %I.late() returns int language sql as ''select 1''', nspname) from pg_namespace where nspname like 'shard_00001__moved%'); end $$`)
	refused := func(what string) {
		t.Helper()
		if _, err := move.Clean(t.Context(), b.load(), shards.SetOf(1)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %s named", err, what)
		}
	}
	refused("late()")
	b.exec(0, `do $$ begin execute (select 'drop function ' || oid::regprocedure from pg_proc where proname = 'late'); end $$; create table shard_00001.mine as select 1 as n`)
	refused("shard_00001.mine")
	b.cfg.Map, b.cfg.To = b.load(), "pg-a"
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "shard_00001.mine") {
		t.Errorf("back to a fence with a table: got %v", err)
	}
	b.equal("mine", b.text(0, `select n from shard_00001.mine`), "1")
	b.exec(0, `drop table shard_00001.mine`)
	if _, err := move.Clean(t.Context(), b.load(), shards.SetOf(1)); err != nil {
		t.Error(err)
	}
	b.clean()
}

// A shard that is changed while its way back is taken stays.
func TestChangedWhileFencingBack(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	wait := b.whileFencing(1, `create function shard_00001.by_hand() returns int language sql as 'select 1'`)
	_, err := move.Rollback(t.Context(), b.cfg.Config)
	wait()
	if !errors.Is(err, move.ErrNoWayBack) {
		t.Errorf("got %v", err)
	}
	b.served("pg-b", "after the rollback that failed")
	b.equal("by hand", b.text(1, `select shard_00001.by_hand()`), "1")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.exec(1, `drop function shard_00001.by_hand()`)
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
	b.served("pg-a", "after the rollback")
	b.clean()
}
