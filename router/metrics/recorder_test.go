package metrics_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// doEverything has a shard do one of each kind, and fail once.
func doEverything(ctx context.Context, s router.Shard) error {
	_, err := s.Exec(ctx, `insert into photos values ($1, $2) on conflict do nothing`, 1, "sunset")
	var title string
	err = errors.Join(err, s.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title))
	err = errors.Join(err, s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update photos set title = $1`, "x")
		return err
	}))
	var batch pgx.Batch
	batch.Queue(`select 1`)
	batch.Queue(`select 2`)
	err = errors.Join(err, s.SendBatch(ctx, &batch).Close())
	if _, bad := s.Exec(ctx, `insert into photos values ($1, $2)`, 1, "again"); bad == nil {
		return errors.New("no error")
	}
	if _, bad := s.Exec(ctx, `do $$ begin raise sqlstate 'ZZ123'; end $$`); bad == nil {
		return errors.New("no error")
	}
	return err
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, nil)
	if err := doEverything(ctx, b.shard(t, 0)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"operation_seconds", []string{"kind", "read"}, 1},
		{"operation_seconds", []string{"kind", "write"}, 2},
		{"operation_seconds", []string{"kind", "tx"}, 6},
		{"operation_seconds", []string{"kind", "batch"}, 1},
		{"operation_seconds", []string{"kind", "copy"}, 0},
		{"wait_seconds", nil, 6},
		{"calls_total", nil, 6},
		{"errors_total", []string{"class", "23"}, 1},
		{"errors_total", []string{"class", "other"}, 1},
		{"connections", []string{"state", "idle"}, 1},
		{"connections", []string{"state", "busy"}, 0},
		{"connections_max", nil, 1},
		{"shards", nil, 2},
		{"map_version", nil, 0},
		{"map_stale", nil, 0},
		{"pooler", nil, 0},
	} {
		labels := append([]string{"cluster", "test"}, test.labels...)
		if !strings.HasPrefix(test.name, "map_") {
			labels = append(labels, "host", "pg-a")
		}
		if got := b.value(t, test.name, labels...); got != test.want {
			t.Errorf("%s%q: got %g, want %g", test.name, test.labels, got, test.want)
		}
	}
	problems, err := testutil.GatherAndLint(b.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// As many shards as there may be make no more series than a few.
func TestSeriesDoNotGrowWithShards(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 64, nil)
	var one int
	for n := range 64 {
		if err := doEverything(ctx, b.shard(t, n)); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if err := doEverything(ctx, b.shard(t, 63)); err != nil { // on the other host
				t.Fatal(err)
			}
			one = b.series(t)
		}
	}
	if all := b.series(t); all != one || one == 0 {
		t.Errorf("%d series after 64 shards, %d after one of each host", all, one)
	}
}

// Batches are counted by their size, and each call that shared one waited.
func TestBatchSizes(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, nil)
	s := b.shard(t, 0)
	const query = `select $1::int`
	rounds := 0
	for ; rounds == 0 || b.Stats()[0].Sizes[10] == 0; rounds++ { // until it is not taken for slow, as it is if the machine is
		callTogether(ctx, t, b, s, query)
	}
	var batches float64
	for _, n := range b.Stats()[0].Sizes {
		batches += float64(n)
	}
	if got := b.value(t, "batch_size", "host", "pg-a"); got != batches {
		t.Errorf("%g batches, expected %g", got, batches)
	}
	if got, want := b.value(t, "wait_seconds", "host", "pg-a"), float64(rounds*(8+1+10)); got != want {
		t.Errorf("%g waits, expected %g", got, want)
	}
}

// callTogether calls a statement 8 times, and then 10 times while the only connection is taken.
func callTogether(ctx context.Context, t *testing.T, b *bundle, s router.Shard, query string) {
	t.Helper()
	var n int
	for range 8 {
		if err := s.QueryRow(ctx, query, 1).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := s.Begin(ctx) // has the only connection
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			var n int
			if err := s.QueryRow(ctx, query, 1).Scan(&n); err != nil {
				t.Error(err)
			}
		})
	}
	b.await(ctx, t, "all wait", equals(10), "waiting_calls", "host", "pg-a")
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
}

// A host that is down is counted as such, and nothing is counted as a wait for a connection that never came.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, func(c *shards.Config) { c.Hosts[1].DSN = "postgres://app:hunter2@127.0.0.1:1/app" })
	if _, err := b.shard(t, 3).Exec(ctx, `select 1`); err == nil {
		t.Fatal("no error")
	}
	if got := b.value(t, "errors_total", "host", "pg-b", "class", "unreachable"); got != 1 {
		t.Errorf("%g errors, expected 1", got)
	}
	if got := b.value(t, "wait_seconds", "host", "pg-b"); got != 0 {
		t.Errorf("%g waits, expected none", got)
	}
}

// What left the map has no series any more; the other host goes on.
func TestHostLeavesTheMap(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, nil)
	for _, n := range []int{0, 3} {
		if err := doEverything(ctx, b.shard(t, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.value(t, "errors_total", "host", "pg-b", "class", "23"); got != 1 {
		t.Fatalf("%g errors of pg-b, expected 1", got)
	}
	c := b.Map().Config()
	c.Version = 7
	c.Hosts = c.Hosts[:1:1]
	c.Placement = shards.Evenly(4, c.Hosts)
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetMap(m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"errors_total", "operation_seconds", "wait_seconds", "connections_max"} {
		if got := b.value(t, name, "host", "pg-b"); got != -1 {
			t.Errorf("%s of pg-b: %g, expected none", name, got)
		}
		if got := b.value(t, name, "host", "pg-a"); got < 1 {
			t.Errorf("%s of pg-a: %g, expected some", name, got)
		}
	}
	if version, changes := b.value(t, "map_version"), b.value(t, "map_changes_total"); version != 7 || changes != 1 {
		t.Errorf("version %g after %g changes", version, changes)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Directory} })
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: b.Map()}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ForNew(ctx, shards.NumberKey(7)); err != nil {
		t.Fatal(err)
	}
	misses := b.value(t, "directory_misses_total")
	for range 3 {
		if _, err := b.ForKey(ctx, shards.NumberKey(7)); err != nil {
			t.Fatal(err)
		}
	}
	if misses < 1 || b.value(t, "directory_misses_total") != misses {
		t.Errorf("%g misses, then %g", misses, b.value(t, "directory_misses_total"))
	}
	if hits, entries := b.value(t, "directory_hits_total"), b.value(t, "directory_entries"); hits != 3 || entries != 1 {
		t.Errorf("%g hits, %g entries", hits, entries)
	}
}

// Observing costs no allocation.
func TestObservingAllocatesNothing(t *testing.T) {
	b, ctx := setup(t, 4, nil)
	probe := &probe{}
	r, err := router.New(ctx, router.Config{Map: b.Map(), Tracers: []pgx.QueryTracer{probe}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.ForShard(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(ctx, `select 1`); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() { b.recorder.TraceQueryEnd(probe.ctx, nil, pgx.TraceQueryEndData{}) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// probe keeps the context that a tracer is given.
type probe struct{ ctx context.Context }

func (p *probe) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	p.ctx = ctx
	return ctx
}

func (p *probe) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
