package prove_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// briefStore takes a change only if its why is short, as if mapstore.MaxNote were as low: few shards do for a test of many.
type briefStore struct {
	mapstore.Store

	limit   int
	refuses bool // each change, whatever the check said
}

func (s briefStore) Check(ctx context.Context, next mapstore.Change) error {
	return s.Store.(mapstore.Checker).Check(ctx, s.longer(next))
}

func (s briefStore) Swap(ctx context.Context, from int, next mapstore.Change) (mapstore.Entry, error) {
	if s.refuses {
		next.Why = strings.Repeat("x", mapstore.MaxNote+1)
		return s.Store.Swap(ctx, from, next)
	}
	return s.Store.Swap(ctx, from, s.longer(next))
}

func (s briefStore) longer(next mapstore.Change) mapstore.Change {
	if len(next.Why) > s.limit {
		next.Why += strings.Repeat("x", mapstore.MaxNote)
	}
	return next
}

// manyShards is how many shards a host has that is split: in full as many as a large one.
func manyShards() int {
	if pgtest.Full() {
		return 2048
	}
	return 80 // names of half of them are longer than a move says
}

// Half of many shards leave their host at once, every other one, so that a list of them is long. A mover that dies before the promotion has
// them taken back; the next one brings them to their new host; and the old schemas of both hosts are dropped.
func TestManyLeave(t *testing.T) {
	t.Parallel()
	c := startPairOf(t, manyShards())
	cfg := c.promotion()
	var leave []shards.Number
	for n := 1; n < manyShards(); n += 2 {
		leave = append(leave, shards.Number(n))
	}
	cfg.Shards, cfg.MaxPause = shards.SetOf(leave...), time.Minute
	cfg.Store = briefStore{Store: cfg.Store, limit: 150}
	took := func(what string, began time.Time) {
		t.Logf("%s of %d shards: %s", what, len(leave), time.Since(began).Round(time.Millisecond))
	}

	died := make(chan struct{})
	go func() {
		defer close(died)
		dies := cfg
		dies.Events = func(e progress.Event) {
			if point(e) == "cutover: fenced" {
				runtime.Goexit()
			}
		}
		_, err := move.Promote(t.Context(), dies)
		t.Errorf("the mover has not died: %v", err)
	}()
	<-died
	began := time.Now()
	all := c.inLedger()
	all.Shards = shards.Set{}
	if report, err := move.Abort(t.Context(), all); err != nil || report.Done.Len() != len(leave) {
		t.Fatalf("abort: %d done, %v", report.Done.Len(), err)
	}
	took("abort", began)
	c.servedShard(1, "pg-a")

	refusing := cfg
	refusing.By = strings.Repeat("x", mapstore.MaxNote+1)
	if _, err := move.Promote(t.Context(), refusing); err == nil || !strings.Contains(err.Error(), "by: 4097 bytes; expected text in UTF-8, 4096 bytes at most") {
		t.Errorf("a name that is too long: %v", err)
	}

	began = time.Now()
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		switch tell(e); point(e) {
		case "cutover: fences made":
			took("fences", began)
			began = time.Now()
		case "promote: begun":
			took("fencing", began)
			began = time.Now()
		case "promote: switched":
			took("promotion", began)
			began = time.Now()
		}
	}
	if report, err := move.Promote(t.Context(), cfg); err != nil || report.Done.Len() != len(leave) {
		t.Fatalf("promote: %d done, %v", report.Done.Len(), err)
	}
	took("the end", began)
	now := c.load(c.direct)
	if got := now.NumbersOn("pg-b"); shards.SetOf(got...).String() != cfg.Shards.String() {
		t.Errorf("pg-b has %d shards", len(got))
	}
	began = time.Now()
	if report, err := move.Clean(t.Context(), now, shards.Set{}); err != nil || report.Done.Len() != manyShards() {
		t.Errorf("clean: %d done, %v", report.Done.Len(), err)
	}
	took("clean", began)
	for _, host := range []string{"pg-a", "pg-b"} {
		if found := c.text(host, `select count(*) from pg_namespace where nspname like 'shard\_%\_\_%'`); found != "0" {
			t.Errorf("%s has %s old schemas", host, found)
		}
	}
}

// A store that refuses the change although it would have taken it is not asked again as if it were down. The next mover goes on.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	cfg := c.promotion()
	asked := 0
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if strings.Contains(e.What, "4096 bytes at most") {
			asked++
		}
	}
	cfg.Store = briefStore{Store: cfg.Store, limit: 160, refuses: true}
	report, err := move.Promote(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "why: 4097 bytes") || report.Resumable.Len() != 2 || asked > 0 {
		t.Errorf("got %+v, %v, asked again %d times", report, err, asked)
	}
	if report, err := move.Resume(t.Context(), c.inLedger()); err != nil || report.Done.Len() != 2 {
		t.Errorf("resume: %+v, %v", report, err)
	}
	c.servedShard(1, "pg-b")
}

// Moves whose hosts have slots, senders and workers for one of them only wait for their turn.
func TestMovesWaitForRoom(t *testing.T) {
	t.Parallel()
	few := localpg.Config{Settings: map[string]string{"max_replication_slots": "2", "max_wal_senders": "2", "max_logical_replication_workers": "2"}}
	c := start(t, map[string]localpg.Config{"pg-a": few, "pg-b": few})
	cfg := c.config("pg-a", "pg-b")
	cfg.Shards = shards.SetOf(0, 1)
	if report, err := move.Run(t.Context(), cfg); err != nil || report.Done.Len() != 2 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// A standby that somebody else promotes while a split waits for it is named at once, and what was fenced is opened. Prepared transactions that
// would be on both hosts are named before, and by the clean that they would hold up.
func TestPromotedByOthers(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	c.exec("pg-a", `begin; insert into shard_00000.events (what) values ('x'); prepare transaction 'kept'`)
	cfg := c.promotion()
	plan, err := move.PlanPromotion(t.Context(), cfg)
	if err != nil || !strings.Contains(strings.Join(plan.Notes, "; "), `prepared transaction 'kept' of database app would be on both hosts`) {
		t.Errorf("the plan: %+v, %v", plan, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		if tell(e); point(e) == "cutover: fences made" {
			c.exec("pg-b", `select pg_promote()`)
		}
	}
	report, err := move.Promote(ctx, cfg)
	if err == nil || !strings.Contains(err.Error(), "somebody else has promoted it") || report.Resumable.Len() > 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	for n := range shards.Number(4) {
		c.exec("pg-a", fmt.Sprintf(`begin; insert into shard_%05d.photos (title) values ('served'); rollback`, n))
	}
}

// A prepared transaction of a shard that stays does not hold up the clean of its copy in silence.
func TestPreparedCopy(t *testing.T) {
	t.Parallel()
	c := startPair(t)
	c.exec("pg-a", `begin; insert into shard_00000.events (what) values ('x'); prepare transaction 'kept'`)
	if _, err := move.Promote(t.Context(), c.promotion()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	now := c.load(c.direct)
	if report, err := move.Clean(ctx, now, shards.Set{}); err == nil || !strings.Contains(err.Error(), "prepared transaction 'kept' holds locks in it") {
		t.Errorf("clean: %+v, %v", report, err)
	}
	c.exec("pg-b", `rollback prepared 'kept'`)
	c.exec("pg-a", `commit prepared 'kept'`)
	if report, err := move.Clean(ctx, now, shards.Set{}); err != nil || report.Done.Len() != 1 {
		t.Errorf("clean: %+v, %v", report, err)
	}
}
