package mapstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func testKilled(t *testing.T, k kit) {
	hasty := func(o *mapstore.Options) { o.Limit = time.Second }
	s, other, patient := k.open(t, hasty), k.open(t, hasty), k.open(t)
	swap(t, patient, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	rounds := 1
	if pgtest.Full() {
		rounds = 2
	}
	for round := range rounds {
		from := round + 1
		k.kill(t)
		_ = w.fails(t)
		if _, err := s.Load(newContext(t)); err == nil || errors.Is(err, mapstore.ErrNoMap) {
			t.Errorf("error %v of a store that is down", err)
		}
		if _, err := other.Swap(newContext(t), from, newChange(9)); err == nil {
			t.Error("a store that is down changed the map")
		} else if conflict := (*mapstore.ConflictError)(nil); errors.As(err, &conflict) {
			t.Errorf("error %v of a store that is down", err)
		}
		for _, err := range other.History(newContext(t)) {
			if err == nil {
				t.Error("a store that is down has a history")
			}
		}
		k.restart(t)
		checkEntry(t, swap(t, patient, from, from+1), from+1, from+1)
		checkEntry(t, w.entry(t), from+1, from+1)
		checkEntry(t, load(t, patient), from+1, from+1)
	}
	if all := versions(t, patient); len(all) != rounds+1 {
		t.Errorf("%d versions, want %d", len(all), rounds+1)
	}
}

// testKilledAtRandom has clients swap without end, and kills the store now and then: fifty in full.
func testKilledAtRandom(t *testing.T, k kit) {
	hasty := func(o *mapstore.Options) { o.Limit = 15 * time.Second } // fifty at once need some time
	clients := 15
	if pgtest.Full() {
		clients = 50
	}
	stores := make([]mapstore.Store, 5)
	for i := range stores {
		stores[i] = k.open(t, hasty)
	}
	swap(t, k.open(t), 0, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 3*testLimit)
	defer cancel()
	next, stop := iter.Pull2(stores[0].Watch(ctx, 1))
	defer stop()
	w := watching{next, stop}

	type outcome int
	const (
		made outcome = iota
		refused
		unknown
	)
	var (
		mu         sync.Mutex
		outcomes   = map[string]outcome{}
		versionsOf = map[string]int{}
		attempts   atomic.Int64
		wins       atomic.Int64
		group      sync.WaitGroup
	)
	for i := range clients {
		s := stores[i%len(stores)]
		group.Go(func() {
			for ctx.Err() == nil {
				now, err := s.Load(ctx)
				if err != nil {
					select { // the store needs the processor to come back
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
					continue
				}
				next := newChange(i + 1)
				next.Why = fmt.Sprintf("attempt %d", attempts.Add(1))
				e, err := s.Swap(ctx, now.Map.Version(), next)
				mu.Lock()
				switch {
				case err == nil:
					outcomes[next.Why], versionsOf[next.Why] = made, e.Map.Version()
					wins.Add(1)
				case errors.Is(err, mapstore.ErrOutcomeUnknown):
					outcomes[next.Why] = unknown
				default:
					outcomes[next.Why] = refused
				}
				mu.Unlock()
			}
		})
	}
	kills := 1
	if pgtest.Full() {
		kills = 3
	}
	for range kills {
		won := wins.Load()
		for wins.Load() < won+10 && ctx.Err() == nil {
			w.entry(t)
		}
		k.kill(t)
		k.restart(t)
	}
	won := wins.Load()
	for wins.Load() < won+10 && ctx.Err() == nil {
		w.entry(t)
	}
	if ctx.Err() != nil {
		t.Error("the store did not come back")
	}
	cancel()
	group.Wait()

	all := versions(t, k.open(t))
	found := map[string]int{}
	for i, e := range all {
		if want := len(all) - i; e.Map.Version() != want {
			t.Fatalf("version %d in the place of %d", e.Map.Version(), want)
		}
		if _, twice := found[e.Why]; twice {
			t.Errorf("%s was made twice", e.Why)
		}
		found[e.Why] = e.Map.Version()
	}
	counts := map[outcome]int{}
	for why, outcome := range outcomes {
		counts[outcome]++
		version, ok := found[why]
		switch {
		case outcome == made && version != versionsOf[why]:
			t.Errorf("%s was made as version %d, and is version %d in the history (0: none)", why, versionsOf[why], version)
		case outcome == refused && ok:
			t.Errorf("%s was refused, and is version %d", why, version)
		}
	}
	t.Logf("%d versions: of %d attempts %d made, %d refused, %d unknown", len(all), len(outcomes), counts[made], counts[refused], counts[unknown])
}
