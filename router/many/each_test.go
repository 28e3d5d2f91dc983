package many_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

var errBoom = errors.New("boom")

// Each works on all hosts at the same time, and on up to PerHost shards of each.
func TestEachPerHost(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 3})
	for _, test := range []struct{ perHost, want int }{{0, 4}, {1, 1}, {7, 7}} {
		var mu sync.Mutex
		running, most, calls := map[string]int{}, map[string]int{}, map[shards.Number]int{}
		full := make(chan struct{})
		err := many.Each(ctx, b.Router, b.All(), many.Options{PerHost: test.perHost}, func(ctx context.Context, s router.Shard) error {
			host := s.Host().Name
			mu.Lock()
			calls[s.Number()]++
			running[host]++
			most[host] = max(most[host], running[host])
			if len(calls) == 3*test.want {
				close(full)
			}
			mu.Unlock()
			defer func() {
				mu.Lock()
				running[host]--
				mu.Unlock()
			}()
			select {
			case <-full: // as many as are allowed were running at once
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil || len(calls) != shardCount {
			t.Fatalf("%d shards: %v", len(calls), err)
		}
		for n, count := range calls {
			if count != 1 {
				t.Errorf("shard %d was called %d times", n, count)
			}
		}
		if got, want := fmt.Sprint(most), fmt.Sprintf("map[pg-a:%[1]d pg-b:%[1]d pg-c:%[1]d]", test.want); got != want {
			t.Errorf("PerHost %d: at once on a host: %s, want %s", test.perHost, got, want)
		}
	}
}

// The error lists exactly the shards that are done, failed or were not attempted.
func TestEachTellsTheTruth(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Map(rapid.Int32Range(0, shardCount-1), func(n int32) shards.Number { return shards.Number(n) }), 0, 40)
		set := shards.SetOf(numbers.Draw(rt, "set")...)
		bad := shards.SetOf(numbers.Draw(rt, "bad")...)
		last := shards.Number(rapid.IntRange(0, 2*shardCount).Draw(rt, "interrupt at"))
		opts := many.Options{PerHost: rapid.IntRange(0, 5).Draw(rt, "PerHost"), FirstError: rapid.Bool().Draw(rt, "FirstError")}
		ctx, interrupt := context.WithCancel(ctx)
		defer interrupt()

		var mu sync.Mutex
		called, good := []shards.Number{}, []shards.Number{}
		err := many.Each(ctx, b.Router, set, opts, func(_ context.Context, s router.Shard) error {
			mu.Lock()
			defer mu.Unlock()
			called = append(called, s.Number())
			if s.Number() == last {
				interrupt()
			}
			if bad.Has(s.Number()) {
				return errBoom
			}
			good = append(good, s.Number())
			return nil
		})
		if err == nil {
			if shards.SetOf(good...).String() != set.String() || len(good) != set.Len() {
				rt.Fatalf("no error, and done are %v", good)
			}
			return
		}
		p := partial(t, err, set)
		slices.Sort(called)
		slices.Sort(good)
		if !slices.Equal(slices.Collect(p.Done.All()), good) {
			rt.Errorf("done are %s, want %v", p.Done, good)
		}
		if p.Done.Len()+len(p.Failed) != len(called) {
			rt.Errorf("called for %v, told %v", called, p)
		}
		for _, f := range p.Failed {
			if !bad.Has(f.Shard) || !same(f.Err, errBoom) || f.Schema != b.Map().Schema(f.Shard) || f.Host != b.Map().Host(f.Shard).Name {
				rt.Errorf("failed: %v", f)
			}
		}
		interrupted := ctx.Err() != nil
		if errors.Is(err, context.Canceled) != interrupted {
			rt.Errorf("interrupted: %t, and the error is %v", interrupted, err)
		}
		if p.NotAttempted.Len() > 0 && !interrupted && (!opts.FirstError || len(p.Failed) == 0) {
			rt.Errorf("for no reason: %v", err)
		}
		if len(p.Failed) > 0 && opts.FirstError && !interrupted && (len(p.Causes) != 1 || !errors.Is(p.Causes[0], errBoom)) {
			rt.Errorf("the causes are %v", p.Causes)
		}
	})
}

// With FirstError, the first error also cancels the shards that are running.
func TestEachFirstErrorCancels(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	set := parse(t, "0-2,40")
	var begun sync.WaitGroup
	begun.Add(set.Len())
	err := many.Each(ctx, b.Router, set, many.Options{FirstError: true}, func(ctx context.Context, s router.Shard) error {
		begun.Done()
		begun.Wait()
		if s.Number() == 1 {
			return errBoom
		}
		<-ctx.Done()
		return ctx.Err()
	})
	p := isPartial(t, err, set, "", "0-2,40", "")
	if len(p.Causes) != 1 || !errors.Is(p.Causes[0], errBoom) {
		t.Errorf("causes: %v", p.Causes)
	}
}

// An error that already names the shard is not wrapped again. An error that wraps one is kept.
func TestEachErrors(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	set := shards.SetOf(3, 4)
	err := many.Each(ctx, b.Router, set, many.Options{}, func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `select * from nowhere`)
		if s.Number() == 4 {
			return fmt.Errorf("look: %w", err)
		}
		return err
	})
	p := isPartial(t, err, set, "", "3-4", "")
	if got, want := p.Failed[0].Error(), `shard 3 (shard_00003 on pg-a): ERROR: relation "nowhere" does not exist (SQLSTATE 42P01)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := p.Failed[1].Error(), `shard 4 (shard_00004 on pg-a): look: shard 4 (shard_00004 on pg-a): ERROR`; got[:len(want)] != want {
		t.Errorf("got %s, want %s", got, want)
	}

	called := false
	fn := func(context.Context, router.Shard) error { called = true; return nil }
	if err := many.Each(ctx, b.Router, shards.SetOf(1, shardCount), many.Options{}, fn); !errors.Is(err, shards.ErrNoShard) || called {
		t.Errorf("a shard too many: called %t, %v", called, err)
	}
	if err := many.Each(ctx, b.Router, shards.Set{}, many.Options{}, fn); err != nil || called {
		t.Errorf("no shard: called %t, %v", called, err)
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errBoom)
	err = many.Each(ended, b.Router, set, many.Options{}, fn)
	if isPartial(t, err, set, "", "", "3-4"); called || !errors.Is(err, context.Canceled) || !errors.Is(err, errBoom) {
		t.Errorf("called %t, %v", called, err)
	}
}

// The time limit applies to one shard and ends only that shard.
func TestEachTimeout(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.lock(ctx, t, 7)
	err := many.Each(ctx, b.Router, b.All(), many.Options{PerHost: 1, Timeout: 50 * time.Millisecond}, func(ctx context.Context, s router.Shard) error {
		if s.Number() != 7 {
			return nil // how long it takes is not the point
		}
		var owner int
		return s.QueryRow(ctx, `select owner from photos`).Scan(&owner)
	})
	p := isPartial(t, err, b.All(), "0-6,8-63", "7", "")
	if !errors.Is(p.Failed[0], context.DeadlineExceeded) || len(p.Causes) > 0 {
		t.Errorf("got %v, causes %v", p.Failed[0], p.Causes)
	}
	b.allFree(ctx, t, 4)
}

// If a host is unreachable, only the shards that already run there are attempted.
func TestEachGivesUpHost(t *testing.T) {
	t.Parallel()
	b, ctx := withDeadHost(t, options{conns: 1})
	ask := func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `select 1`)
		return err
	}
	err := many.Each(ctx, b.Router, b.All(), many.Options{PerHost: 1}, ask)
	p := isPartial(t, err, b.All(), "0-31", "32", "33-63")
	if len(p.Causes) != 1 {
		t.Fatalf("causes: %v", p.Causes)
	}
	isHostError(t, p.Causes[0], "pg-b")
	isHostError(t, err, "pg-b")
	err = many.Each(ctx, b.Router, parse(t, "40-45"), many.Options{PerHost: 1, FirstError: true}, ask)
	p = isPartial(t, err, parse(t, "40-45"), "", "40", "41-45")
	if len(p.Causes) != 1 {
		t.Errorf("first error: causes: %v", p.Causes)
	}

	// A host whose pool has no free connection is not given up, nor is one that refuses new connections.
	b.dsns[1] = routertest.Server.DSN("router_nowhere")
	refusing, _ := setup(t, options{on: b})
	err = many.Each(ctx, refusing.Router, parse(t, "30-36"), many.Options{PerHost: 1}, ask)
	isHostError(t, err, "pg-b")
	if p := isPartial(t, err, parse(t, "30-36"), "30-31", "32-36", ""); len(p.Causes) > 0 || sqlState(p.Failed[0]) != "3D000" {
		t.Errorf("got %v, causes %v", p, p.Causes)
	}
	tx, err := b.shard(t, 0).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = many.Each(ctx, b.Router, parse(t, "0-5"), many.Options{PerHost: 1}, func(ctx context.Context, s router.Shard) error {
		if s.Number() != 2 {
			return nil
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return ask(short, s)
	})
	isHostError(t, err, "pg-a")
	isPartial(t, err, parse(t, "0-5"), "0-1,3-5", "2", "")
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}

	// A host that answers is not given up. An error about one host does not give up another.
	err = many.Each(ctx, b.Router, parse(t, "0-5"), many.Options{PerHost: 2}, func(ctx context.Context, s router.Shard) error {
		if s.Number() == 2 {
			return ask(ctx, b.shard(t, 40))
		}
		return ask(ctx, s)
	})
	isPartial(t, err, parse(t, "0-5"), "0-1,3-5", "2", "")
}

func TestEachKeyAndEachID(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	var mu sync.Mutex
	got := map[shards.Number]string{}
	note := func(s router.Shard, what any) error {
		mu.Lock()
		defer mu.Unlock()
		got[s.Number()] += fmt.Sprint(what)
		return nil
	}
	keys := []int64{71, 7, 40, -24, 7}
	err := many.EachKey(ctx, b.Router, keys, many.Options{}, func(_ context.Context, s router.Shard, keys []int64) error { return note(s, keys) })
	if want := "map[7:[71 7 7] 40:[40 -24]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("keys: %v, %v, want %s", got, err, want)
	}
	if set, err := many.OfKeys(ctx, b.Router, keys...); err != nil || set.String() != "7,40" {
		t.Errorf("OfKeys: %s, %v", set, err)
	}

	clear(got)
	ids := []shards.ID{7<<10 | 2, 40 << 10, 7<<10 | 1}
	err = many.EachID(ctx, b.Router, ids, many.Options{}, func(_ context.Context, s router.Shard, ids []shards.ID) error { return note(s, ids) })
	if want := "map[7:[7170 7169] 40:[40960]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("IDs: %v, %v, want %s", got, err, want)
	}
	if set, err := many.OfIDs(b.Router, ids...); err != nil || set.String() != "7,40" {
		t.Errorf("OfIDs: %s, %v", set, err)
	}

	clear(got)
	ids = append(ids, -1)
	err = many.EachID(ctx, b.Router, ids, many.Options{}, func(_ context.Context, s router.Shard, ids []shards.ID) error { return note(s, ids) })
	if !errors.Is(err, shards.ErrNoShard) || len(got) > 0 {
		t.Errorf("an ID without a shard: %v, %v", got, err)
	}
	if set, err := many.OfIDs(b.Router, ids...); !errors.Is(err, shards.ErrNoShard) || set.Len() > 0 {
		t.Errorf("OfIDs of an ID without a shard: %s, %v", set, err)
	}
	if b.All().String() != "0-63" {
		t.Errorf("All: %s", b.All())
	}
}

// Keys may be texts, or numbers and texts together, if the map's strategy accepts them.
func TestEachTextKey(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, by: &shards.Strategy{By: shards.Hash}})
	var mu sync.Mutex
	got := map[string]shards.Number{}
	names := []string{"alice", "bob", "carol", "42", "alice"}
	err := many.EachKey(ctx, b.Router, names, many.Options{}, func(_ context.Context, s router.Shard, names []string) error {
		mu.Lock()
		defer mu.Unlock()
		for _, name := range names {
			got[name] = s.Number()
		}
		return nil
	})
	if err != nil || len(got) != 4 {
		t.Fatalf("got %v, %v", got, err)
	}
	for name, n := range got {
		if s, err := b.ForKey(ctx, shards.TextKey(name)); err != nil || s.Number() != n {
			t.Errorf("%s: got shard %d, want %v, %v", name, n, s, err)
		}
	}
	set, err := many.OfKeys(ctx, b.Router, shards.NumberKey(42), shards.TextKey("alice"))
	if want := shards.SetOf(got["42"], got["alice"]); err != nil || set.String() != want.String() {
		t.Errorf("OfKeys: got %s, %v, want %s", set, err, want)
	}
}
