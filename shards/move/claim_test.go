package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/sql"
)

// hookedStore is a store that calls functions before it loads and swaps. An error of theirs is the store's.
type hookedStore struct {
	mapstore.Store
	onLoad, onSwap func() error
}

func (s *hookedStore) Load(ctx context.Context) (mapstore.Entry, error) {
	if s.onLoad != nil {
		if err := s.onLoad(); err != nil {
			return mapstore.Entry{}, err
		}
	}
	return s.Store.Load(ctx)
}

func (s *hookedStore) Swap(ctx context.Context, from int, next mapstore.Change) (mapstore.Entry, error) {
	if s.onSwap != nil {
		if err := s.onSwap(); err != nil {
			return mapstore.Entry{}, err
		}
	}
	return s.Store.Swap(ctx, from, next)
}

// loseFence makes the source of a move what a standby is that is promoted without the fence's commit: it has neither the fence nor the slot.
func (b *bundle) loseFence(source int) {
	b.t.Helper()
	b.exec(source, `
do $$ declare m record; q record; begin
  select * into strict m from kiloshard.moves where outcome is null and side = 'source';
  execute format('alter schema shard_00001 rename to shard_00001__fence_%s', m.id);
  execute format('alter schema shard_00001__moved_%s rename to shard_00001', m.id);
  for q in select * from jsonb_to_recordset(m.sequences) r (name text, max bigint, increment bigint, last bigint, called bool) loop
    execute format('alter sequence shard_00001.%I maxvalue %s increment %s', q.name, q.max, q.increment);
    perform setval(format('shard_00001.%I', q.name), q.last, q.called);
  end loop;
  update kiloshard.moves set step = 'cutover', fenced = null, sequences = null, carried = null where id = m.id;
end $$`)
	b.exec(1-source, `do $$ declare s name; begin
  for s in select subname from pg_subscription where subdbid = (select oid from pg_database where datname = current_database()) loop execute format('alter subscription %I disable', s); end loop;
end $$`)
	b.exec(source, `do $$ declare s name; begin
  for s in select slot_name from pg_replication_slots where database = current_database() loop
    for n in 1..600 loop exit when exists (select from pg_replication_slots where slot_name = s and not active); perform pg_sleep(0.1); end loop;
    perform pg_drop_replication_slot(s);
  end loop; end $$`)
}

// The source fails over to a standby that has not heard of the fence, when the target serves already: the target keeps what was written
// there, and a resume fences the source and ends the move. So it is with a rollback.
func TestLostFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.RollbackFor = time.Hour
	rows := 1000
	lost := func(source int, home string) {
		b.loseFence(source)
		rows++
		b.exec(1-source, `insert into shard_00001.photos (title) values ('since')`)
		if _, err := move.Abort(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), "of the map puts shard 1 on "+home+" already: expected move resume") {
			t.Errorf("abort: got %v", err)
		}
		b.equal("rows after the abort", b.text(1-source, `select count(*) from shard_00001.photos`), fmt.Sprint(rows))
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.served(home, "after the resume")
		b.equal("rows after the resume", b.text(1-source, `select count(*) from shard_00001.photos`), fmt.Sprint(rows))
		b.equal("map", b.load().Host(1).Name, home)
		b.cfg.Map = b.m
		b.clean()
	}
	b.interrupted("fenced: switched")
	lost(0, "pg-b")
	if _, err := move.Rollback(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrNoWayBack) {
		t.Errorf("a rollback without the position of the fence: got %v", err)
	}

	if _, err := move.Clean(t.Context(), b.m, shards.Set{}); err != nil {
		t.Fatal(err)
	}
	b.cfg.To = "pg-a"
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	stopped(t, b, "fenced: switched", rollback)
	lost(0, "pg-b")
}

// A map that somebody has changed by hand while rows are copied has nobody fence the source, or drop what the map names.
func TestMapChangedInCopy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("publish: published")
	to := func(host string) {
		now := b.load()
		c := now.Config()
		c.Placement = []shards.Placement{{Host: "pg-a", Shards: shards.SetOf(0)}, {Host: "pg-b", Shards: shards.SetOf(2, 3)}}
		for i := range c.Placement {
			if c.Placement[i].Host == host {
				c.Placement[i].Shards = c.Placement[i].Shards.Union(shards.SetOf(1))
			}
		}
		if _, err := b.store.Swap(t.Context(), now.Version(), mapstore.Change{Config: c, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	to("pg-b")
	if _, err := move.Resume(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), "whose ledger does not say that its rows have come") {
		t.Errorf("resume: got %v", err)
	}
	if _, err := move.Abort(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), "puts shard 1 on pg-b already") {
		t.Errorf("abort: got %v", err)
	}
	to("pg-a")
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.load()
	b.served("pg-b", "after the resume")
	b.clean()
}

// An abort does not overwrite a step that has changed since it read the ledger.
func TestStepChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.interrupted("copy: copied")
	cfg := b.cfg
	changed := false
	cfg.Store = &hookedStore{Store: b.store, onLoad: func() error {
		if !changed {
			changed = true
			b.exec(0, `update kiloshard.moves set step = 'switched' where outcome is null`)
		}
		return nil
	}}
	if _, err := move.Abort(t.Context(), cfg.Config); err == nil || !strings.Contains(err.Error(), "the ledger of pg-a") {
		t.Errorf("got %v", err)
	}
	b.equal("step", b.text(0, `select step from kiloshard.moves`), "switched")
}

// endMover ends the sessions of movers on a host.
func (b *bundle) endMover(host int) {
	b.t.Helper()
	b.exec(host, `select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'kiloshard move' and datname = current_database()`)
}

// A mover that has lost its sessions at the fence does not change the map any more once another one has taken the move back.
func TestAbortedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	cfg := b.cfg
	aborted := false
	cfg.Events = func(e progress.Event) {
		b.cfg.Events(e)
		if aborted || point(e) != "fenced: begun" {
			return
		}
		aborted = true
		for host := range 2 {
			b.endMover(host)
		}
		if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
			t.Error(err)
		}
	}
	_, err := move.Run(t.Context(), cfg)
	if err == nil || !aborted {
		t.Errorf("got %v, aborted %v", err, aborted)
	}
	b.equal("map", b.load().Host(1).Name, "pg-a")
	b.served("pg-a", "after the abort")
	b.clean()
}

// A shard is not fenced while the store does not answer.
func TestStoreDownBeforeFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	const write = `begin; insert into shard_00001.photos (title) values ('served'); rollback`
	down, waited, heals := false, false, false
	cfg := b.cfg
	cfg.Store = &hookedStore{Store: b.store, onLoad: func() error {
		if down {
			return errors.New("it is down")
		}
		return nil
	}}
	cfg.Events = func(e progress.Event) {
		switch p := point(e); {
		case p == "copy: caught up":
			down = true
		case p == "cutover: locked" && down:
			t.Error("the shard is locked while the store is down")
		case heals && strings.Contains(e.What, "tries again: the store: it is down"):
			b.exec(0, write)
			waited, down = true, false
		}
	}
	b.interrupted("copy: copied") // others on the server may have a transaction that is older than the slot, which takes patience
	impatient := cfg
	impatient.RetryLimit = 500 * time.Millisecond
	if _, err := move.Resume(t.Context(), impatient.Config); err == nil || !strings.Contains(err.Error(), "no cutover within 500ms: the store: it is down") {
		t.Errorf("got %v", err)
	}
	b.exec(0, write)
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	down, heals = false, true
	if _, err := move.Run(t.Context(), cfg); err != nil || !waited {
		t.Errorf("got %v, waited %t", err, waited)
	}
	b.served("pg-b", "after the move")
	b.clean()
}

// Somebody else has moved a shard by the time that its turn comes.
func TestMovedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cfg := b.cfg
	cfg.Shards, cfg.PerHost = shards.SetOf(0, 1), 1
	tell, moved := b.cfg.Events, false
	cfg.Events = func(e progress.Event) {
		tell(e)
		if !moved {
			moved = true
			if _, err := move.Run(t.Context(), b.cfg); err != nil {
				t.Error(err)
			}
		}
	}
	report, err := move.Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "the map has shard 1 on pg-b by now: expected pg-a") {
		t.Errorf("got %v", err)
	}
	b.equal("moved", report.Done.String(), "0")
	b.served("pg-b", "after both")
}

// A mover that dies once the new host takes writes is not taken back, and goes on though somebody has granted something behind the fence
// since: nobody else serves. So it is with a rollback.
func TestOpenStaysOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.RollbackFor = time.Hour
	stuck := func(source int, do func(context.Context, move.RunConfig) (move.Report, error)) {
		t.Helper()
		cfg := b.cfg
		cfg.Store = &hookedStore{Store: b.store, onSwap: func() error { // a refusal: the store is not asked again
			now := b.load()
			_, err := b.store.Swap(t.Context(), now.Version(), mapstore.Change{Config: now.Config(), By: strings.Repeat("x", mapstore.MaxNote+1)})
			return err
		}}
		if _, err := do(t.Context(), cfg); err == nil {
			t.Fatal("it is not stuck")
		}
		b.exec(1-source, `insert into shard_00001.photos (title) values ('accepted')`)
		b.exec(source, `do $$ begin execute (select format('grant select on %s to pg_monitor', oid::regclass) from pg_class where relname = 'photos' and relkind = 'r' and relnamespace::regnamespace::text like 'shard_00001%'); end $$`)
		if _, err := move.Abort(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), "takes writes already: expected move resume") {
			t.Errorf("abort: got %v", err)
		}
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		home := []string{"pg-a", "pg-b"}[1-source]
		b.equal("map", b.load().Host(1).Name, home)
		b.served(home, "after the resume")
		b.equal("accepted", b.text(1-source, `select count(*) from shard_00001.photos where title = 'accepted'`), fmt.Sprint(1+source))
	}
	stuck(0, move.Run)
	b.cfg.Map = b.load()
	stuck(1, rollback)
	b.clean()
}

// A mover whose sessions with the source are lost right after the fence goes on: nobody is served meanwhile.
func TestSourceLostBehindFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	tell, lost := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "fenced: begun" {
			lost = true
			b.endMover(0)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil || !lost {
		t.Errorf("got %v, lost: %t", err, lost)
	}
	b.equal("map", b.load().Host(1).Name, "pg-b")
	b.served("pg-b", "after the move")
	b.clean()
}

// An abort that comes to a move which another command has just ended says how.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("copy: copied")
	holder := b.connect(0)
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(t.Context(), sql.ShardTurn{Shard: 1, Schema: "shard_00001"}.Mark()); err != nil {
		t.Fatal(err)
	}
	aborted := make(chan error)
	go func() {
		_, err := move.Abort(t.Context(), b.cfg.Config)
		aborted <- err
	}()
	b.eventually("the abort waits", 0, `select count(*) > 0 from pg_stat_activity where application_name = 'kiloshard move' and datname = current_database() and query like '%try_advisory%'`)
	b.exec(0, `update kiloshard.moves set outcome = 'moved'`)
	if err := holder.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-aborted; err == nil || !strings.Contains(err.Error(), "another command has ended the move meanwhile: it is moved") {
		t.Errorf("got %v", err)
	}
	b.exec(0, `update kiloshard.moves set outcome = null`)
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
}
