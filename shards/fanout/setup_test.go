package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Main{M: m}) }

// session is what the tests' workers work in.
type session struct {
	host string
	dead bool
}

// testBundle is a run on made-up hosts, and what was seen of it. Its fields may be changed before
// the run.
type testBundle struct {
	cfg  fanout.Config[*session]
	plan []fanout.Work

	mu       sync.Mutex // guards what follows
	opened   []string   // hosts, once a session
	open     int        // sessions that are not closed
	mostBusy map[string]int
	batches  [][]shards.Number
	begun    []string
	finished map[shards.Number]error
	ended    int
}

// setup returns a bundle whose plan is all of count shards, shard n on host n modulo hosts, with
// sessions that always open and a Do that always succeeds.
func setup(t *testing.T, count, hosts int) *testBundle {
	t.Helper()
	c := shards.Config{Cluster: "test", Shards: count, Epoch: time.Unix(1_700_000_000, 0)}
	numbers := make([][]shards.Number, hosts)
	for n := range count {
		numbers[n%hosts] = append(numbers[n%hosts], shards.Number(n))
	}
	for i := range hosts {
		name := fmt.Sprintf("pg-%d", i)
		c.Hosts = append(c.Hosts, shards.Host{Name: name, DSN: "host=" + name})
		c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(numbers[i]...), Host: name})
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	b := &testBundle{plan: fanout.Plan(m, m.All()), mostBusy: map[string]int{}, finished: map[shards.Number]error{}}
	b.cfg = fanout.Config[*session]{
		Map:      m,
		Open:     func(_ context.Context, h shards.Host) (*session, error) { return &session{host: h.Name}, nil },
		Close:    func(context.Context, *session) {},
		Alive:    func(s *session) bool { return !s.dead },
		Do:       func(_ context.Context, _ *session, batch []shards.Number) []error { return make([]error, len(batch)) },
		Progress: b,
	}
	return b
}

// run runs the plan and checks what holds of every run.
func (b *testBundle) run(t *testing.T, ctx context.Context) (shards.Set, error) {
	t.Helper()
	cfg := b.cfg
	cfg.Open = func(ctx context.Context, h shards.Host) (*session, error) {
		s, err := b.cfg.Open(ctx, h)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.opened = append(b.opened, h.Name)
		if err == nil {
			b.open++
		}
		return s, err
	}
	cfg.Close = func(ctx context.Context, s *session) {
		if err := ctx.Err(); err != nil {
			t.Errorf("a session is closed with a context that has ended: %v", err)
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a session is closed without a time limit")
		}
		b.cfg.Close(ctx, s)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
	}
	busy := map[string]int{}
	inUse := map[*session]bool{}
	cfg.Do = func(ctx context.Context, s *session, batch []shards.Number) []error {
		b.mu.Lock()
		if inUse[s] || s.dead {
			t.Error("a session is used twice at a time, or after its death")
		}
		inUse[s] = true
		busy[s.host]++
		b.mostBusy[s.host] = max(b.mostBusy[s.host], busy[s.host])
		b.batches = append(b.batches, slices.Clone(batch))
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			inUse[s] = false
			busy[s.host]--
		}()
		return b.cfg.Do(ctx, s, batch)
	}
	done, err := fanout.Run(ctx, cfg, b.plan)
	b.check(t, done, err)
	return done, err
}

// check holds the rules that every run keeps: nothing stays open, every shard is done, failed or not
// attempted, and Progress was told the same.
func (b *testBundle) check(t *testing.T, done shards.Set, err error) {
	t.Helper()
	if b.open != 0 {
		t.Errorf("%d sessions stay open", b.open)
	}
	if b.ended != 1 {
		t.Errorf("Progress.End was called %d times", b.ended)
	}
	partial := &shards.PartialError{Done: done}
	if err != nil && !errors.As(err, &partial) {
		t.Fatalf("got %v, expected a PartialError", err)
	}
	if partial.Done.String() != done.String() {
		t.Errorf("done: got %s, and %s in the error", done, partial.Done)
	}
	all := slices.Collect(done.All())
	for n := range done.All() {
		if told, ok := b.finished[n]; !ok || told != nil {
			t.Errorf("shard %d is done, Progress was told %v, %v", n, ok, told)
		}
	}
	for _, f := range partial.Failed {
		all = append(all, f.Shard)
		if told := b.finished[f.Shard]; !errors.Is(f.Err, told) || told == nil {
			t.Errorf("shard %d failed with %v, Progress was told %v", f.Shard, f.Err, told)
		}
	}
	for n := range partial.NotAttempted.All() {
		all = append(all, n)
		if _, ok := b.finished[n]; ok {
			t.Errorf("shard %d was not attempted, Progress was told that it finished", n)
		}
	}
	slices.Sort(all)
	if !slices.Equal(all, slices.Collect(b.cfg.Map.All().All())) {
		t.Errorf("done, failed and not attempted are not all shards once: %v", all)
	}
}

// Begin, Finished and End are the bundle's side of fanout.Progress. They take no lock, so that the
// race detector sees whether they are called at the same time.
func (b *testBundle) Begin(host string, total int) {
	b.begun = append(b.begun, fmt.Sprintf("%s %d", host, total))
}

func (b *testBundle) Finished(_ string, n shards.Number, err error, _ time.Duration) {
	b.finished[n] = err
}

func (b *testBundle) End() { b.ended++ }

// partial returns the PartialError that err must be.
func partial(t *testing.T, err error) *shards.PartialError {
	t.Helper()
	var p *shards.PartialError
	if !errors.As(err, &p) {
		t.Fatalf("got %v, expected a PartialError", err)
	}
	return p
}
