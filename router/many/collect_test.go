package many_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

func TestCollect(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{hosts: 2})
	all := db.fill(ctx, t)
	for _, mode := range modes {
		for _, conns := range []int32{1, 4} {
			b, ctx := setup(t, options{on: db, conns: conns, mode: mode})
			for _, perHost := range []int{0, 1, 5} {
				q := photosOf(`owner >= $1`, 0)
				q.PerHost = perHost
				set := parse(t, "3-9,16,30-50")
				rows, err := many.Collect(ctx, b.Router, set, q)
				if want := rowsOf(all, set); err != nil || !slices.Equal(rows, want) {
					t.Errorf("%s, %d connections, PerHost %d: got %v, want %v: %v", mode, conns, perHost, rows, want, err)
				}
				groups, err := many.CollectByShard(ctx, b.Router, set, q)
				if err != nil || len(groups) != set.Len() {
					t.Fatalf("%s: %d groups: %v", mode, len(groups), err)
				}
				i := 0
				for n := range set.All() {
					if groups[i].Shard.Number() != n || !slices.Equal(groups[i].Rows, all[n]) {
						t.Errorf("%s: group %d: got %v, want %v of shard %d", mode, i, groups[i], all[n], n)
					}
					i++
				}
			}
			b.allFree(ctx, t, int(conns))
		}
	}
}

// Several callers of Collect share few connections without a deadlock, and do not share a connection's type map. A
// connection adds to its type map when it reads pg_lsn, which pgx does not know.
func TestCollectTogether(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	type lsn string
	type row struct {
		Owner int64
		LSN   lsn
	}
	for _, mode := range modes {
		b, ctx := setup(t, options{on: db, conns: 1, mode: mode})
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				rows, err := many.Collect(ctx, b.Router, b.All(), many.Query[row]{
					SQL: `select owner, '0/1'::pg_lsn from photos where id = $1`, Args: []any{1}, Scan: pgx.RowToStructByPos[row],
				})
				for i, got := range rows {
					if want := (row{int64(i), "0/1"}); got != want {
						err = fmt.Errorf("row %d: got %v, want %v", i, got, want)
					}
				}
				if len(rows) != shardCount {
					err = errors.Join(err, fmt.Errorf("%d rows", len(rows)))
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
		b.isFree(ctx, t)
	}
}

// counter counts the statements that started and ended.
type counter struct{ begun, ended atomic.Int32 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.begun.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { c.ended.Add(1) }

// Collect sends all statements of a host before the first answer arrives.
func TestCollectSendsTogether(t *testing.T) {
	t.Parallel()
	var c counter
	b, ctx := setup(t, options{pool: func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = &c }})
	release := b.lock(ctx, t, 0)
	ended := make(chan error, 1)
	go func() {
		_, err := many.Collect(ctx, b.Router, b.All(), photosOf(`true`))
		ended <- err
	}()
	b.awaitWaiting(ctx, t, 1)
	for c.ended.Load() != shardCount-1 {
		if err := b.plain.Ping(ctx); err != nil {
			t.Fatalf("%d statements ended while the first was held up: %v", c.ended.Load(), err)
		}
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCollectWithoutATable(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	all := b.fill(ctx, t)
	b.run(ctx, t, `drop table shard_00005.photos`)
	set := parse(t, "2-9,40-49")
	rows, err := many.Collect(ctx, b.Router, set, photosOf(`true`))
	p := isPartial(t, err, set, "2-4,6-9,40-49", "5", "")
	if want := rowsOf(all, p.Done); !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	if sqlState(p.Failed[0]) != "42P01" || len(p.Causes) > 0 || p.Failed[0].Schema != "shard_00005" {
		t.Errorf("got %v, causes %v", p.Failed[0], p.Causes)
	}

	q := photosOf(`true`)
	q.FirstError, q.PerHost = true, 1
	set = parse(t, "2-9")
	rows, err = many.Collect(ctx, b.Router, set, q)
	p = isPartial(t, err, set, "2-4", "5", "6-9")
	if want := rowsOf(all, p.Done); !slices.Equal(rows, want) || len(p.Causes) != 1 || sqlState(p.Causes[0]) != "42P01" {
		t.Errorf("got %v, want %v: %v", rows, want, p)
	}
	b.allFree(ctx, t, 4)
}

// Collect returns no rows of a shard if it cannot read all of them.
func TestCollectWhatDoesNotScan(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	set := parse(t, "1-3")
	groups, err := many.CollectByShard(ctx, b.Router, set, many.Query[int]{
		SQL: `select case when owner = 2 and n = 2 then null else n end from photos, generate_series(1, 3) n`, Scan: pgx.RowTo[int],
	})
	isPartial(t, err, set, "1,3", "2", "")
	if len(groups) != 2 || groups[0].Shard.Number() != 1 || groups[1].Shard.Number() != 3 || !slices.Equal(groups[1].Rows, []int{1, 2, 3}) {
		t.Errorf("got %v", groups)
	}
	// A shard also returns no rows if it fails after some of them.
	numbers, err := many.Collect(ctx, b.Router, set, many.Query[int]{
		SQL: `select 1/(n - 1000 * (owner % 2))::int from photos, generate_series(1, 2000) n`, Scan: pgx.RowTo[int],
	})
	isPartial(t, err, set, "2", "1,3", "")
	if len(numbers) != 2000 {
		t.Errorf("%d rows", len(numbers))
	}
	b.allFree(ctx, t, 4)
}

func TestCollectRefuses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	if _, err := many.Collect(ctx, b.Router, shards.SetOf(1, 99), photosOf(`true`)); !errors.Is(err, shards.ErrNoShard) || !strings.Contains(err.Error(), "1,99") {
		t.Errorf("a shard too many: %v", err)
	}
	field := new(shards.FieldError)
	if _, err := many.Collect(ctx, b.Router, b.All(), many.Query[photo]{SQL: `select 1`}); !errors.As(err, &field) || field.Field != "Scan" {
		t.Errorf("without Scan: %v", err)
	}
	if rows, err := many.Collect(ctx, b.Router, shards.Set{}, photosOf(`true`)); err != nil || len(rows) > 0 {
		t.Errorf("no shard: %v, %v", rows, err)
	}
}

// If a host is unreachable, one of its shards is reported as failed and the others as not attempted.
func TestCollectFromDeadHost(t *testing.T) {
	t.Parallel()
	b, ctx := withDeadHost(t, options{})
	for _, perHost := range []int{0, 1, 3} {
		q := photosOf(`true`)
		q.PerHost = perHost
		rows, err := many.Collect(ctx, b.Router, b.All(), q)
		p := isPartial(t, err, b.All(), "0-31", "32", "33-63")
		if len(rows) != 32 || len(p.Causes) != 1 {
			t.Fatalf("PerHost %d: %d rows, causes %v", perHost, len(rows), p.Causes)
		}
		isHostError(t, p.Causes[0], "pg-b")
	}
}

// A host goes down while Collect runs, and comes back.
func TestCollectFromDyingHost(t *testing.T) {
	t.Parallel()
	b, ctx, own := withOwnServer(t)
	all := b.fill(ctx, t)
	locks := &testBundle{Router: b.Router, dsns: b.dsns[1:], plain: openPool(ctx, t, b.dsns[1])}
	locks.lock(ctx, t, 35)
	q := photosOf(`true`)
	q.PerHost = 1
	type result struct {
		rows []photo
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		rows, err := many.Collect(ctx, b.Router, b.All(), q)
		ended <- result{rows, err}
	}()
	locks.awaitWaiting(ctx, t, 1)
	if err := own.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	got := <-ended
	p := isPartial(t, got.err, b.All(), "0-34", "35", "36-63") // the router retries the statement, and there is no connection
	if want := rowsOf(all, p.Done); !slices.Equal(got.rows, want) {
		t.Errorf("got %v, want %v", got.rows, want)
	}
	if len(p.Causes) != 1 {
		t.Fatalf("causes: %v", p.Causes)
	}
	isHostError(t, p.Causes[0], "pg-b")

	if err := own.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	left := shards.SetOf(append(failed(p), slices.Collect(p.NotAttempted.All())...)...)
	eventually(ctx, t, func() bool { // the router has to notice that the host is back
		rows, err := many.Collect(ctx, b.Router, left, q)
		if errors.Is(err, router.ErrHostDown) {
			return false
		}
		if want := rowsOf(all, left); err != nil || !slices.Equal(rows, want) {
			t.Errorf("afterwards: got %v, want %v: %v", rows, want, err)
		}
		return true
	})
}

// A shard that is blocked fails at its time limit. On a slow machine others may exceed the limit too.
func TestCollectTimeout(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	all := b.fill(ctx, t)
	b.lock(ctx, t, 7)
	q := photosOf(`true`)
	q.Timeout = 2 * time.Second
	rows, err := many.Collect(ctx, b.Router, parse(t, "5-9"), q)
	p := partial(t, err, parse(t, "5-9"))
	if !slices.Contains(failed(p), 7) || p.NotAttempted.Len() > 0 || len(p.Causes) > 0 {
		t.Errorf("got %v", p)
	}
	for _, f := range p.Failed {
		if !errors.Is(f, context.DeadlineExceeded) {
			t.Errorf("got %v", f)
		}
	}
	if want := rowsOf(all, p.Done); !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	b.awaitWaiting(ctx, t, 0)
	b.allFree(ctx, t, 4)
}

// A caller that is interrupted gets the rows that came before, and an error that lists the missing shards.
func TestCollectInterrupted(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	all := b.fill(ctx, t)
	b.lock(ctx, t, 7, 9)
	for _, test := range []struct {
		perHost, waiting int
		done, left       string
	}{{1, 1, "3-6", "8-12"}, {0, 1, "", ""}} {
		set := parse(t, "3-12")
		interrupted, interrupt := context.WithCancelCause(ctx)
		q := photosOf(`true`)
		q.PerHost = test.perHost
		ended := make(chan struct{})
		var rows []photo
		var err error
		go func() {
			defer close(ended)
			rows, err = many.Collect(interrupted, b.Router, set, q)
		}()
		b.awaitWaiting(ctx, t, test.waiting)
		interrupt(errBoom)
		<-ended
		p := partial(t, err, set)
		if test.perHost == 1 {
			isPartial(t, err, set, test.done, "7", test.left)
		}
		held := slices.Contains(failed(p), 7) || slices.Contains(failed(p), 9) // one may have waited for the other's connection
		if !held || len(p.Causes) != 1 || !errors.Is(p.Causes[0], context.Canceled) || !errors.Is(p.Causes[0], errBoom) {
			t.Errorf("got %v, causes %v", p, p.Causes)
		}
		if want := rowsOf(all, p.Done); !slices.Equal(rows, want) {
			t.Errorf("got %v, want %v", rows, want)
		}
		b.awaitWaiting(ctx, t, 0)
		b.allFree(ctx, t, 2)
	}
}

// The arguments of one shard come before the arguments of all shards.
func TestOwnArguments(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	q := many.Query[string]{
		SQL:  `select title || $1::bigint || $2::text from photos`,
		Own:  func(n shards.Number) []any { return []any{int64(n) * 10} },
		Args: []any{"!"}, Scan: pgx.RowTo[string],
	}
	want := []string{"of shard 770!", "of shard 33330!"}
	if got, err := many.Collect(ctx, b.Router, shards.SetOf(33, 7), q); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, expected %q", got, err, want)
	}
	var streamed []string
	for row, err := range many.Stream(ctx, b.Router, shards.SetOf(7), q) {
		if err != nil {
			t.Fatal(err)
		}
		streamed = append(streamed, row)
	}
	for row, err := range many.Merge(ctx, b.Router, shards.SetOf(7), q, 1, func(a, b string) bool { return a < b }) {
		if err != nil {
			t.Fatal(err)
		}
		streamed = append(streamed, row)
	}
	if want := []string{"of shard 770!", "of shard 770!"}; !slices.Equal(streamed, want) {
		t.Errorf("got %q, expected %q", streamed, want)
	}
}
