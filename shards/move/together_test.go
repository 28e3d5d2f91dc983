package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// point names what happens in a move: the step, and the kind of event.
func point(e progress.Event) string { return string(e.Step) + ": " + string(e.Kind) }

// interrupted begins a move and leaves it at a point, as a mover does that is interrupted there.
func (b *bundle) interrupted(at string) {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	defer stop()
	cfg, reached := b.cfg, false
	cfg.Events = func(e progress.Event) {
		if point(e) == at {
			reached = true
			stop()
		}
	}
	report, err := move.Run(ctx, cfg)
	if !reached || err == nil || report.Resumable.String() != "1" {
		b.t.Fatalf("not interrupted at %q: %v, %v", at, report, err)
	}
}

// A migration leaves a shard alone that is being moved, whether or not its mover is alive, and takes it up afterwards.
func TestMigrateDuringMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("copy: copied")
	files := fstest.MapFS{"002_more.sql": {Data: []byte(`alter table photos add more int;`)}}
	for name, file := range migrations {
		files[name] = file
	}
	up := func() (migrate.Report, error) {
		return migrate.Up(t.Context(), migrate.Config{Map: b.load(), Files: files})
	}
	report, err := up()
	var partial *shards.PartialError
	if !errors.As(err, &partial) || !errors.Is(err, migrate.ErrMoving) {
		t.Fatal(err)
	}
	b.equal("done", report.Done.String()+" "+partial.NotAttempted.String(), "0,2-3 1")
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) > 0 {
		t.Errorf("verify: %v, %v", differences, err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: b.m}); err != nil {
		t.Error(err)
	}
	// Past the check of the run, as one that began before the move.
	err = b.try(0, `select kiloshard.begin_migration(1, 1, 'shard_00001', 1, 'pg_catalog', '', '', false)`)
	if err == nil || !strings.Contains(err.Error(), "KSM02") {
		t.Errorf("begin_migration: %v", err)
	}

	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.load()
	if report, err = up(); err != nil {
		t.Fatal(err)
	}
	b.equal("done", report.Done.String(), "1")
	b.exec(1, `select more from shard_00001.photos`)
	b.clean()
}

// A mover that is interrupted around the fence leaves a shard that one host serves.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	for _, at := range []string{"cutover: carried", "fenced: begun", "fenced: switched"} {
		b.cfg.Map = b.load()
		b.cfg.To = other(b.m.Host(1).Name)
		b.interrupted(at)
		b.load()
		b.exec(b.m.HostIndex(1), `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
		b.cfg.Map = b.load()
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.served(b.cfg.To, "after the resume")
		b.equal("host", b.load().Host(1).Name, b.cfg.To)
		b.clean()
	}
}

// A shard that was changed by hand since it was copied does not move.
func TestStructureChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.interrupted("copy: copied")
	b.exec(0, `alter table shard_00001.photos add by_hand int`)
	_, err := move.Resume(t.Context(), b.cfg.Config)
	var structure *move.StructureError
	if !errors.As(err, &structure) || !strings.Contains(err.Error(), "by_hand") {
		t.Errorf("got %v", err)
	}
	b.equal("host", b.load().Host(1).Name, "pg-a")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.served("pg-a", "after the abort")
	b.clean()
}

// A single byte that differs is found, in a small shard under the fence and in a large one before, and the shard does not move.
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("copy: copied")
	for name, limit := range map[string]int64{"small": 8 << 20, "large": 1} {
		b.exec(1, asReplica+`update shard_00001.photos set title = 'phoTo 7' where title = 'photo 7'`)
		cfg := b.cfg
		cfg.VerifyUnderFence = limit
		_, err := move.Resume(t.Context(), cfg.Config)
		var rows *move.RowsError
		if !errors.As(err, &rows) || rows.Differences[0] != "photos: 1000 rows on both, and not the same" {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := move.Verify(t.Context(), cfg.Config); !errors.As(err, &rows) {
			t.Errorf("%s: verify: got %v", name, err)
		}
		b.equal("host", b.load().Host(1).Name, "pg-a")
		b.exec(0, `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
		b.exec(1, asReplica+`update shard_00001.photos set title = 'photo 7' where title = 'phoTo 7'`)
	}
	b.cfg.VerifyUnderFence = 1
	if _, err := move.Verify(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.served("pg-b", "at last")
	b.clean()
}

// A transaction that holds a lock for long keeps the shard from moving, and nobody else waiting.
func TestLongTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.interrupted("copy: copied")
	holder := b.connect(0)
	defer holder.Close(context.Background())
	// Until it is older than the lock timeout: a younger one is waited for under locks.
	if _, err := holder.Exec(t.Context(), `begin; select from shard_00001.events where n = 1 for update; select pg_sleep(0.5)`); err != nil {
		t.Fatal(err)
	}
	c := b.crowd(t, returning, reading(`select count(*) from photos`))
	waits := make(chan struct{}, 1000)
	cfg := b.cfg
	cfg.Events = func(e progress.Event) {
		if e.Kind == progress.Waiting {
			waits <- struct{}{}
		}
	}
	impatient := b.cfg
	impatient.RetryLimit = time.Millisecond
	if _, err := move.Resume(t.Context(), impatient.Config); err == nil || !strings.Contains(err.Error(), "no cutover within 1ms: a transaction of process ") {
		t.Errorf("got %v", err)
	}
	ended := make(chan error, 1)
	go func() { _, err := move.Resume(t.Context(), cfg.Config); ended <- err }()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("the move has ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the move does not wait")
	}
	c.some("calls while the move waits")
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	c.some("calls after the move")
	c.end(b, 1)
	b.clean()
}

// A transaction begins when a cutover is about to lock its table, and goes on: calls wait behind the cutover until that gives up, and not
// until the transaction ends.
func TestTransactionAtCutover(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	holder := b.connect(0)
	defer holder.Close(context.Background())
	hold := func(statements string) {
		if _, err := holder.Exec(t.Context(), statements); err != nil {
			t.Error(err)
		}
	}
	c := b.crowd(t, returning, inTx, reading(`select n from events order by n limit 1`))
	b.cfg.LockTimeout = time.Minute // a transaction that is older is waited for without locks
	tell, ended := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		switch p := point(e); {
		case p == "cutover: begun":
			hold(`begin; select from shard_00001.events where n = 1 for update`)
		case !ended && (p == "cutover: tries again" || p == "cutover: waits"):
			ended = true
			c.some("calls while the transaction goes on")
			hold(`rollback`)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if !ended {
		t.Error("the shard moved although a transaction held a lock in it")
	}
	c.some("calls after the move")
	c.end(b, 1)
	b.clean()
}

// Of a caller and a cutover that wait for each other, the cutover gives up.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.LockTimeout = time.Minute
	tables := strings.Split(b.text(0, `select string_agg(oid || ' ' || relname, ',') from pg_class where relnamespace = 'shard_00001'::regnamespace and relkind = 'r'`), ",")
	_, first, _ := strings.Cut(tables[0], " ")
	oid, last, _ := strings.Cut(tables[len(tables)-1], " ")
	caller, watcher := b.connect(0), b.connect(0)
	defer caller.Close(context.Background())
	defer watcher.Close(context.Background())
	gaveUp, ended := make(chan struct{}), make(chan error, 1)
	call := func() error {
		for waits := false; !waits; { // for longer than deadlock_timeout: by then the cutover has looked for a deadlock
			select {
			case <-gaveUp:
				waits = true
			default:
				const query = `select exists (select from pg_locks where relation = $1::text::oid and not granted and waitstart < clock_timestamp() - interval '1.2 s')`
				if err := watcher.QueryRow(t.Context(), query, oid).Scan(&waits); err != nil {
					return err
				}
			}
		}
		_, err := caller.Exec(t.Context(), `select from shard_00001.`+first+`; commit`)
		return err
	}
	tell, begun, free := b.cfg.Events, false, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		switch p := point(e); {
		case !begun && p == "cutover: begun":
			begun = true
			if _, err := caller.Exec(t.Context(), `begin; select from shard_00001.`+last); err != nil {
				t.Error(err)
			}
			go func() { ended <- call() }()
		case begun && !free && (p == "cutover: tries again" || p == "cutover: waits"):
			free = true
			close(gaveUp)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the caller: %v", err)
	}
	b.served("pg-b", "at last")
	b.clean()
}

// A try of a cutover that takes longer than writers may wait is another try's turn, wherever in it the time was spent.
func TestPauseOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	const pause = 400 * time.Millisecond
	b.cfg.MaxPause, b.cfg.LockTimeout = pause, pause
	late := map[string]bool{}
	tell := b.cfg.Events
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if p := point(e); (p == "cutover: marked" || p == "cutover: carried") && !late[p] {
			late[p] = true
			time.Sleep(3 * pause)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("tries that were late", fmt.Sprint(len(late)), "2")
	b.served("pg-b", "at last")
	b.clean()
}

// Of two movers of a shard one does it, and a shard whose move is under way is not moved by another.
func TestTwoMovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.interrupted("copy: copied")
	_, err := move.Run(t.Context(), b.cfg)
	if !errors.Is(err, move.ErrUnderWay) {
		t.Errorf("got %v", err)
	}
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.clean()
	b.cfg.Events = nil
	ends := make(chan error, 2)
	for range cap(ends) {
		go func() { _, err := move.Run(t.Context(), b.cfg); ends <- err }()
	}
	if one, two := <-ends, <-ends; (one == nil) == (two == nil) {
		t.Errorf("got %v and %v", one, two)
	}
	b.equal("host", b.load().Host(1).Name, "pg-b")
	b.served("pg-b", "after two movers")
	b.clean()
}
