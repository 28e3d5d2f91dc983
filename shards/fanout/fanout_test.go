package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	m := setup(t, 9, 3).cfg.Map
	set, err := shards.ParseSet("0-1,3,6-7")
	if err != nil {
		t.Fatal(err)
	}
	plan := fanout.Plan(m, set)
	if got, want := fmt.Sprint(plan), "[{pg-0 (pg-0) [0 3 6]} {pg-1 (pg-1) [1 7]}]"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if plan := fanout.Plan(m, shards.Set{}); plan != nil {
		t.Errorf("of no shards: got %v", plan)
	}
}

func TestAllDone(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, 3)
	done, err := b.run(t, t.Context())
	if err != nil || done.String() != "0-99" {
		t.Fatalf("got %s, %v", done, err)
	}
	if got, want := fmt.Sprint(b.begun), "[pg-0 34 pg-1 33 pg-2 33]"; got != want {
		t.Errorf("Progress.Begin: got %s, expected %s", got, want)
	}
	if len(b.batches) != 100 {
		t.Errorf("got %d batches, expected one a shard", len(b.batches))
	}
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 3, 3)
	cfg := b.cfg
	cfg.Open = func(context.Context, shards.Host) (*session, error) { return nil, errors.New("opened") }
	done, err := fanout.Run(t.Context(), cfg, []fanout.Work{{Host: b.plan[0].Host}})
	if err != nil || done.Len() != 0 || b.ended != 1 {
		t.Fatalf("got %s, %v, expected a host without work not to be opened", done, err)
	}
}

func TestOptionalFunctions(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 2)
	cfg := b.cfg
	cfg.Close, cfg.Alive, cfg.Progress = nil, nil, nil
	if done, err := fanout.Run(t.Context(), cfg, b.plan); err != nil || done.Len() != 10 {
		t.Fatalf("got %s, %v", done, err)
	}
}

func TestFailuresAreCollected(t *testing.T) {
	t.Parallel()
	b := setup(t, 20, 2)
	broken := errors.New("broken")
	b.cfg.Batch = 3
	b.cfg.Do = func(_ context.Context, _ *session, batch []shards.Number) []error {
		errs := make([]error, len(batch))
		for i, n := range batch {
			if n == 13 || n == 4 {
				errs[i] = fmt.Errorf("statement of %d: %w", n, broken)
			}
		}
		return errs
	}
	done, err := b.run(t, t.Context())
	p := partial(t, err)
	if done.String() != "0-3,5-12,14-19" || p.NotAttempted.Len() != 0 || len(p.Causes) != 0 {
		t.Errorf("got %s, %v", done, err)
	}
	if len(p.Failed) != 2 || !errors.Is(err, broken) {
		t.Fatalf("got %v", p.Failed)
	}
	if got, want := p.Failed[0].Error(), "shard 4 (shard_00004 on pg-0): statement of 4: broken"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if got, want := p.Failed[1].Error(), "shard 13 (shard_00013 on pg-1): statement of 13: broken"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		count   int
		batch   int
		perHost int
		sizes   []int
		workers int // sessions opened
	}{
		{"default", 3, 0, 1, []int{1, 1, 1}, 1},
		{"the last is smaller", 10, 4, 1, []int{4, 4, 2}, 1},
		{"exactly", 8, 4, 1, []int{4, 4}, 1},
		{"larger than all", 3, 100, 5, []int{3}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, test.count, 1)
			b.cfg.Batch, b.cfg.PerHost = test.batch, test.perHost
			if _, err := b.run(t, t.Context()); err != nil {
				t.Fatal(err)
			}
			var sizes []int
			var order []shards.Number
			for _, batch := range b.batches {
				sizes = append(sizes, len(batch))
				order = append(order, batch...)
			}
			if !slices.Equal(sizes, test.sizes) || !slices.IsSorted(order) {
				t.Errorf("got batches %v, expected sizes %v", b.batches, test.sizes)
			}
			if len(b.opened) != test.workers {
				t.Errorf("opened %d sessions, expected %d", len(b.opened), test.workers)
			}
		})
	}
}

// Every worker of every host waits in Do for all the others, so that fewer would not get through,
// and a worker too many is seen.
func TestPerHost(t *testing.T) {
	t.Parallel()
	for _, perHost := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(perHost), func(t *testing.T) {
			t.Parallel()
			workers := perHost
			if perHost == 0 {
				workers = 2 // the default
			}
			b := setup(t, 40, 2)
			b.cfg.PerHost = perHost
			var arrived sync.WaitGroup
			arrived.Add(2 * workers)
			var mu sync.Mutex
			first := 2 * workers
			b.cfg.Do = func(_ context.Context, _ *session, batch []shards.Number) []error {
				mu.Lock()
				waits := first > 0
				first--
				mu.Unlock()
				if waits {
					arrived.Done()
					arrived.Wait()
				}
				return make([]error, len(batch))
			}
			if _, err := b.run(t, t.Context()); err != nil {
				t.Fatal(err)
			}
			for host, most := range b.mostBusy {
				if most != workers {
					t.Errorf("%s: %d at a time, expected %d", host, most, workers)
				}
			}
			if len(b.opened) != 2*workers {
				t.Errorf("opened %d sessions, expected %d", len(b.opened), 2*workers)
			}
		})
	}
}
