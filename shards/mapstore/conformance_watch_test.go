package mapstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// watching is a watch whose next map a test pulls.
type watching struct {
	next func() (mapstore.Entry, error, bool)
	stop func()
}

func watch(t *testing.T, s mapstore.Store, after int) watching {
	next, stop := iter.Pull2(s.Watch(newContext(t), after))
	t.Cleanup(stop)
	return watching{next, stop}
}

// entry returns the next map, and skips errors before it.
func (w watching) entry(t *testing.T) mapstore.Entry {
	t.Helper()
	for {
		e, err, ok := w.next()
		if !ok {
			t.Fatal("the watch ended, or waited too long")
		}
		if err == nil {
			return e
		}
	}
}

// fails waits for the next error.
func (w watching) fails(t *testing.T) error {
	t.Helper()
	_, err, ok := w.next()
	if !ok || err == nil {
		t.Fatalf("the watch has no error; ended: %t", !ok)
	}
	return err
}

func testSpoiled(t *testing.T, k kit) {
	s := k.open(t)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	k.spoil(t, func(document string) string { return document[:len(document)/2] })
	if err := w.fails(t); errors.Is(err, mapstore.ErrNoMap) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Load(newContext(t)); err == nil || errors.Is(err, mapstore.ErrNoMap) {
		t.Errorf("error %v of what is no map", err)
	}
	k.mend(t)
	e := load(t, s)
	if markOf(e.Map) != 1 {
		t.Errorf("mark %d, want 1", markOf(e.Map))
	}
	made := swap(t, s, e.Map.Version(), 2)
	for {
		if found := w.entry(t); found.Map.Version() >= made.Map.Version() {
			checkEntry(t, found, made.Map.Version(), 2)
			return
		}
	}
}

func testWatchFrom(t *testing.T, k kit) {
	s := k.open(t)
	for i := range 3 {
		swap(t, s, i, i+1)
	}
	behind, at, ahead := watch(t, k.open(t), 1), watch(t, k.open(t), 3), watch(t, k.open(t), 5)
	checkEntry(t, behind.entry(t), 3, 3)
	if back := checkAs[*mapstore.WentBackError](t, ahead.fails(t)); back.Seen != 5 || back.Found != 3 {
		t.Errorf("went back %+v", back)
	}
	swap(t, s, 3, 4)
	checkEntry(t, behind.entry(t), 4, 4)
	checkEntry(t, at.entry(t), 4, 4)
	swap(t, s, 4, 5)
	swap(t, s, 5, 6)
	checkEntry(t, ahead.entry(t), 6, 6)
}

func testWatchRises(t *testing.T, k kit) {
	s := k.open(t)
	swap(t, s, 0, 1)
	const last = 30
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for v := 1; v < last; v++ {
			if _, err := s.Swap(context.Background(), v, newChange(v+1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seen := 0
	for e, err := range k.open(t).Watch(newContext(t), 0) {
		if err != nil {
			t.Error(err)
			continue
		}
		version := e.Map.Version()
		if version <= seen {
			t.Errorf("version %d after %d", version, seen)
		}
		checkEntry(t, e, version, version)
		seen = version
		if seen == 1 { // so that the watch skips versions
			group.Wait()
		}
		if seen == last {
			break
		}
	}
	if seen != last {
		t.Errorf("the last version seen is %d, want %d", seen, last)
	}
}

func testManyWatch(t *testing.T, k kit) {
	s, other := k.open(t), k.open(t)
	swap(t, s, 0, 1)
	const count = 200
	ctx := newContext(t)
	var ready, done sync.WaitGroup
	for i := range count {
		first := func() {}
		if i%2 == 0 { // the others are at the present version, and wait
			ready.Add(1)
			first = sync.OnceFunc(ready.Done)
		}
		done.Go(func() {
			defer first()
			for e, err := range s.Watch(ctx, i%2) {
				if err != nil {
					t.Error(err)
					return
				}
				first()
				if e.Map.Version() == 2 {
					checkEntry(t, e, 2, 2)
					return
				}
			}
			t.Errorf("watcher %d never saw version 2", i)
		})
	}
	ready.Wait()
	swap(t, other, 1, 2)
	done.Wait()
}

func testWatchEnds(t *testing.T, k kit) {
	s := k.open(t)
	swap(t, s, 0, 1)
	ctx, cancel := context.WithCancel(newContext(t))
	defer cancel()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, err := range s.Watch(ctx, 0) {
				if err != nil {
					t.Errorf("error %v, when its context ended", err)
				}
				cancel()
			}
		})
	}
	group.Wait()
	for _, err := range s.Watch(ctx, 0) {
		t.Errorf("a watch whose context has ended yields something; error %v", err)
	}
	_, err := s.Load(ctx)
	checkIs(t, err, context.Canceled)
	_, err = s.Swap(ctx, 1, newChange(2))
	checkIs(t, err, context.Canceled)
	for _, err := range s.History(ctx) {
		checkIs(t, err, context.Canceled)
	}
	checkEntry(t, load(t, s), 1, 1)
}

func testClosed(t *testing.T, k kit) {
	s := k.open(t)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	checkIs(t, w.fails(t), mapstore.ErrClosed)
	if _, _, ok := w.next(); ok {
		t.Error("the watch of a closed store goes on")
	}
	checkIs(t, watch(t, s, 0).fails(t), mapstore.ErrClosed)
	_, err := s.Load(newContext(t))
	checkIs(t, err, mapstore.ErrClosed)
	_, err = s.Swap(newContext(t), 1, newChange(2))
	checkIs(t, err, mapstore.ErrClosed)
	for _, err := range s.History(newContext(t)) {
		checkIs(t, err, mapstore.ErrClosed)
	}
	checkEntry(t, load(t, k.open(t)), 1, 1)
}

func testFifty(t *testing.T, k kit) {
	stores := make([]mapstore.Store, 5)
	for i := range stores {
		stores[i] = k.open(t)
	}
	swap(t, stores[0], 0, 1)
	const rounds = 4
	for round := range rounds {
		from := round + 1
		start := make(chan struct{})
		winners := make([]string, 50)
		var group sync.WaitGroup
		for i := range winners {
			group.Go(func() {
				<-start
				next := newChange(i + 1)
				next.Why = fmt.Sprintf("%d of round %d", i, round)
				e, err := stores[i%len(stores)].Swap(newContext(t), from, next)
				var conflict *mapstore.ConflictError
				switch {
				case err == nil:
					winners[i] = e.Why
				case !errors.As(err, &conflict):
					t.Error(err)
				case conflict.Wanted != from || conflict.Found != from+1:
					t.Errorf("conflict %+v, want %d and %d", conflict, from, from+1)
				}
			})
		}
		close(start)
		group.Wait()
		now := load(t, stores[0])
		won := 0
		for i, why := range winners {
			if why != "" {
				won++
				if now.Why != why || markOf(now.Map) != i+1 || now.Map.Version() != from+1 {
					t.Errorf("%q has won, and the map is version %d by %q", why, now.Map.Version(), now.Why)
				}
			}
		}
		if won != 1 {
			t.Fatalf("%d winners of version %d", won, from+1)
		}
	}
	if all := versions(t, stores[1]); len(all) != rounds+1 {
		t.Errorf("%d versions, want %d", len(all), rounds+1)
	}
}

func testFirstOfMany(t *testing.T, k kit) {
	var won atomic.Int64
	var group sync.WaitGroup
	for i := range 20 {
		s := k.open(t)
		group.Go(func() {
			next := newChange(i + 1)
			next.Config.Version = i // the first may have any version
			_, err := s.Swap(newContext(t), 0, next)
			var conflict *mapstore.ConflictError
			switch {
			case err == nil:
				won.Add(1)
			case !errors.As(err, &conflict):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d first versions", n)
	}
	if all := versions(t, k.open(t)); len(all) != 1 {
		t.Errorf("%d versions, want 1", len(all))
	}
}
