package mapstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// kit is a store for one test that holds no map yet.
type kit struct {
	// open opens the store once more, as another process would, and closes it at the end of the test. change may change
	// the kit's options.
	open func(t *testing.T, change ...func(*mapstore.Options)) mapstore.Store

	// spoil changes the stored document without the store, and mend restores it, as the same version or a later one.
	spoil func(t *testing.T, how func(document string) string)
	mend  func(t *testing.T)

	// kill ends the store at once, as kill -9 does, and restart starts it again. They are nil for a store that cannot be
	// killed.
	kill, restart func(t *testing.T)
}

// testStore tests a store's behavior. newKit makes a store for one test; one that is killed is not shared with other
// tests.
func testStore(t *testing.T, newKit func(t *testing.T, killed bool) kit) {
	for _, test := range []struct {
		name   string
		killed bool
		run    func(t *testing.T, k kit)
	}{
		{"empty", false, testEmpty},
		{"first", false, testFirst},
		{"moved from another store", false, testMoved},
		{"conflict", false, testConflict},
		{"first of many", false, testFirstOfMany},
		{"fifty at once", false, testFifty},
		{"history", false, testHistory},
		{"refused", false, testRefused},
		{"variables", false, testVariables},
		{"spoiled", false, testSpoiled},
		{"parsed once", false, testParsedOnce},
		{"watch from behind, at and ahead", false, testWatchFrom},
		{"watch rises", false, testWatchRises},
		{"many watch", false, testManyWatch},
		{"watch ends", false, testWatchEnds},
		{"closed", false, testClosed},
		{"killed", true, testKilled},
		{"killed at random", true, testKilledAtRandom},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, test.killed)
			if test.killed && k.kill == nil {
				t.Skip("this store has no process of its own")
			}
			test.run(t, k)
		})
	}
}

const cluster = "photos"

// newConfig returns a map with a mark of 1 or more, which distinguishes it from others.
func newConfig(mark int) shards.Config {
	return shards.Config{
		Cluster: cluster, Shards: 8, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Hosts: []shards.Host{
			{Name: "pg-a", DSN: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app", Weight: mark},
			{Name: "pg-b", DSN: "host=10.0.0.2 user=app dbname=app", Replicas: []string{"postgres://app@10.0.0.3/app"}},
		},
		Placement: []shards.Placement{
			{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 3}), Host: "pg-a"},
			{Shards: shards.SetOfRanges(shards.Range{First: 4, Last: 7}), Host: "pg-b"},
		},
	}
}

func markOf(m *shards.Map) int { return m.Hosts()[0].Weight }

func newChange(mark int) mapstore.Change {
	return mapstore.Change{Config: newConfig(mark), By: "alice", Why: fmt.Sprintf("mark %d", mark)}
}

// testLimit bounds each wait of a test.
const testLimit = 5 * time.Minute

func newContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

// swap makes the next version.
func swap(t *testing.T, s mapstore.Store, from, mark int) mapstore.Entry {
	t.Helper()
	e, err := s.Swap(newContext(t), from, newChange(mark))
	if err != nil {
		t.Fatalf("swap from %d: %v", from, err)
	}
	return e
}

func load(t *testing.T, s mapstore.Store) mapstore.Entry {
	t.Helper()
	e, err := s.Load(newContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func checkEntry(t *testing.T, e mapstore.Entry, version, mark int) {
	t.Helper()
	if e.Map == nil {
		t.Fatal("no map")
	}
	if e.Map.Version() != version || markOf(e.Map) != mark {
		t.Errorf("got version %d with mark %d, want version %d with mark %d", e.Map.Version(), markOf(e.Map), version, mark)
	}
	if want := fmt.Sprintf("mark %d", mark); e.By != "alice" || e.Why != want {
		t.Errorf("version %d: by %q, why %q; want alice, %q", version, e.By, e.Why, want)
	}
	if age := time.Since(e.At); age < -time.Hour || age > time.Hour {
		t.Errorf("version %d was made at %s", version, e.At)
	}
}

// checkAs checks that an error is of a type, and returns it.
func checkAs[E error](t *testing.T, err error) E {
	t.Helper()
	var as E
	if !errors.As(err, &as) {
		t.Fatalf("error %v, want a %T", err, as)
	}
	return as
}

func checkIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// versions collects a history.
func versions(t *testing.T, s mapstore.Store) []mapstore.Entry {
	t.Helper()
	var all []mapstore.Entry
	for e, err := range s.History(newContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func testEmpty(t *testing.T, k kit) {
	s := k.open(t)
	_, err := s.Load(newContext(t))
	checkIs(t, err, mapstore.ErrNoMap)
	if all := versions(t, s); len(all) > 0 {
		t.Errorf("%d versions in an empty store", len(all))
	}
	_, err = s.Swap(newContext(t), 3, newChange(1))
	if conflict := checkAs[*mapstore.ConflictError](t, err); conflict.Wanted != 3 || conflict.Found != 0 {
		t.Errorf("conflict %+v", conflict)
	}
	if back := checkAs[*mapstore.WentBackError](t, watch(t, s, 3).fails(t)); back.Seen != 3 || back.Found != 0 {
		t.Errorf("went back %+v", back)
	}
	_, err = s.Load(newContext(t))
	checkIs(t, err, mapstore.ErrNoMap)

	w := watch(t, s, 0)
	found := make(chan mapstore.Entry, 1)
	go func() {
		if e, err, ok := w.next(); ok && err == nil {
			found <- e
		}
		close(found)
	}()
	swap(t, k.open(t), 0, 1)
	checkEntry(t, <-found, 1, 1)
}

func testFirst(t *testing.T, k kit) {
	a, b := k.open(t), k.open(t)
	checkEntry(t, swap(t, a, 0, 7), 1, 7)
	checkEntry(t, load(t, a), 1, 7)
	e := load(t, b)
	checkEntry(t, e, 1, 7)
	written, err := e.Map.Config().Shared().YAML()
	if err != nil {
		t.Fatal(err)
	}
	want := newConfig(7)
	want.Version = 1
	if expected, err := want.Shared().YAML(); err != nil || string(expected) != string(written) {
		t.Errorf("%v\n%s\nwant\n%s", err, written, expected)
	}
}

func testMoved(t *testing.T, k kit) {
	s := k.open(t)
	next := newChange(1)
	next.Config.Version = 12
	e, err := s.Swap(newContext(t), 0, next)
	if err != nil {
		t.Fatal(err)
	}
	checkEntry(t, e, 13, 1)
	next.Config.Version = 0
	_, err = s.Swap(newContext(t), 0, next)
	_ = checkAs[*mapstore.ConflictError](t, err)
	checkEntry(t, swap(t, s, 13, 2), 14, 2)
	checkEntry(t, load(t, k.open(t)), 14, 2)
}

func testConflict(t *testing.T, k kit) {
	a, b := k.open(t), k.open(t)
	swap(t, a, 0, 1)
	swap(t, b, 1, 2)
	for _, from := range []int{0, 1, 3} {
		_, err := a.Swap(newContext(t), from, newChange(9))
		if conflict := checkAs[*mapstore.ConflictError](t, err); conflict.Wanted != from || conflict.Found != 2 {
			t.Errorf("from %d: conflict %+v", from, conflict)
		}
	}
	checkEntry(t, load(t, a), 2, 2)
	if all := versions(t, a); len(all) != 2 {
		t.Errorf("%d versions, want 2", len(all))
	}
}

func testHistory(t *testing.T, k kit) {
	s := k.open(t)
	const count = 60 // more than a page
	for i := range count {
		swap(t, s, i, i+1)
	}
	all := versions(t, k.open(t))
	if len(all) != count {
		t.Fatalf("%d versions, want %d", len(all), count)
	}
	for i, e := range all {
		checkEntry(t, e, count-i, count-i)
		if i > 0 && e.At.After(all[i-1].At) {
			t.Errorf("version %d is later than the one after it", count-i)
		}
	}
	for _, err := range s.History(newContext(t)) {
		if err != nil {
			t.Error(err)
		}
		break // leaves nothing open
	}
	swap(t, s, count, 1)
}

// environment sets one variable for the tests.
func environment(name string) (string, bool) { return "open/sesame", name == "PG_A_PASSWORD" }

func testVariables(t *testing.T, k kit) {
	s := k.open(t)
	next := newChange(1)
	next.Config.Hosts[1].DSN = "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"
	if _, err := s.Swap(newContext(t), 0, next); err != nil { // PG_B_PASSWORD is not set here
		t.Fatal(err)
	}
	_, err := s.Load(newContext(t))
	if missing := checkAs[*shards.FieldError](t, err); !strings.Contains(missing.Found, "PG_B_PASSWORD") {
		t.Errorf("error %v", err)
	}
	_ = checkAs[*shards.FieldError](t, watch(t, s, 0).fails(t))
	if all := versions(t, s); len(all) != 1 || all[0].Map.Hosts()[1].DSN != next.Config.Hosts[1].DSN {
		t.Errorf("history %v", all)
	}
	e := load(t, k.open(t, func(o *mapstore.Options) { o.KeepUnset = true }))
	if got := e.Map.Hosts()[0].ConnString(); got != "postgres://app:open%2Fsesame@10.0.0.1/app" {
		t.Error("the variable that is set was not filled in")
	}
	if got := e.Map.Hosts()[1].DSN; got != next.Config.Hosts[1].DSN {
		t.Errorf("DSN %s is not as written", got)
	}
	swap(t, s, 1, 2)
	if got := load(t, s).Map.Hosts()[0].ConnString(); got != "postgres://app:open%2Fsesame@10.0.0.1/app" {
		t.Error("the variable was not filled in")
	}
}

// testParsedOnce checks that a store parses a bad document once. The document is bad behind the DSNs.
func testParsedOnce(t *testing.T, k kit) {
	var lookups atomic.Int64
	s := k.open(t, func(o *mapstore.Options) {
		o.Lookup = func(name string) (string, bool) {
			lookups.Add(1)
			return environment(name)
		}
	})
	swap(t, s, 0, 1)
	w := watch(t, s, 1)
	k.spoil(t, func(document string) string {
		spoiled := strings.Replace(document, "host: pg-b", "host: pg-x", 1)
		if spoiled == document {
			t.Fatalf("there is no pg-b in:\n%s", document)
		}
		return spoiled
	})
	_ = w.fails(t)
	if _, err := s.Load(newContext(t)); err == nil {
		t.Fatal("expected an error")
	}
	before := lookups.Load()
	for range 5 {
		_, err := s.Load(newContext(t))
		_ = checkAs[*shards.FieldError](t, err)
	}
	if after := lookups.Load(); after != before {
		t.Errorf("its DSNs were expanded again %d times", after-before)
	}
	k.mend(t)
	if e := load(t, s); e.Map.Version() < 1 {
		t.Errorf("version %d", e.Map.Version())
	}
}
