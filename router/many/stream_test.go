package many_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

func compareIDs(a, b photo) int { return cmp.Compare(a.ID, b.ID) }

func TestStream(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{hosts: 2})
	want := rowsOf(db.fill(ctx, t), db.All())
	slices.SortFunc(want, compareIDs)
	for _, mode := range modes {
		b, ctx := setup(t, options{on: db, conns: 3, mode: mode})
		for _, perHost := range []int{0, 1, 8} {
			q := photosOf(`owner >= $1`, 0)
			q.PerHost = perHost
			got, err := take(t, many.Stream(ctx, b.Router, b.All(), q))
			last := map[shards.Number]shards.ID{}
			for _, row := range got {
				s, err := b.ForID(row.ID)
				if err != nil {
					t.Fatal(err)
				}
				if n := s.Number(); row.ID <= last[n] {
					t.Errorf("the rows of shard %d are out of their order", n)
				} else {
					last[n] = row.ID
				}
			}
			slices.SortFunc(got, compareIDs)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, PerHost %d: got %v, want %v: %v", mode, perHost, got, want, err)
			}
		}
		b.allFree(ctx, t, 3)
	}
}

// Stream reads only as many of endless rows as the loop takes, and holds nothing after the loop ends.
func TestStreamStopsEarly(t *testing.T) {
	t.Parallel()
	var c counter
	b, ctx := setup(t, options{hosts: 2, conns: 2, pool: func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = &c }})
	endless := many.Query[int64]{SQL: `select generate_series(1, 1000000000000)`, Scan: pgx.RowTo[int64]}
	seq := many.Stream(ctx, b.Router, b.All(), endless)
	for _, stop := range []int{1, 5000} {
		count := 0
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if count++; count == stop {
				break
			}
		}
		if begun, ended := c.begun.Load(), c.ended.Load(); begun == 0 || begun != ended {
			t.Errorf("after the loop %d statements had begun, and %d had ended", begun, ended)
		}
		b.allFree(ctx, t, 2)
	}
	func() {
		defer func() { _ = recover() }()
		for _, err := range seq {
			panic(err)
		}
	}()
	b.allFree(ctx, t, 2)
}

// The body may use the router if the pool has a connection left.
func TestStreamWithQueriesInside(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 3}) // one more than the default of PerHost
	all := b.fill(ctx, t)
	count := 0
	for row, err := range many.Stream(ctx, b.Router, b.All(), photosOf(`true`)) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.ForID(row.ID)
		if err != nil {
			t.Fatal(err)
		}
		var title string
		if err := s.QueryRow(ctx, `select title from photos where id = $1`, row.ID).Scan(&title); err != nil || title != row.Title {
			t.Fatalf("got %q, %v, want %q", title, err, row.Title)
		}
		count++
	}
	if want := len(rowsOf(all, b.All())); count != want {
		t.Errorf("%d rows, want %d", count, want)
	}
}

func TestStreamPartly(t *testing.T) {
	t.Parallel()
	b, ctx := withDeadHost(t, options{})
	b.run(ctx, t, `drop table shard_00005.photos`)
	q := photosOf(`true`)
	q.PerHost = 1
	rows, err := take(t, many.Stream(ctx, b.Router, b.All(), q))
	p := isPartial(t, err, b.All(), "0-4,6-31", "5,32", "33-63")
	if len(rows) != p.Done.Len() {
		t.Errorf("%d rows", len(rows))
	}
	isHostError(t, err, "pg-b")

	q.FirstError = true
	rows, err = take(t, many.Stream(ctx, b.Router, parse(t, "3-9"), q))
	if isPartial(t, err, parse(t, "3-9"), "3-4", "5", "6-9"); len(rows) != 2 {
		t.Errorf("got %v", rows)
	}

	wrong := many.Query[photo]{SQL: `select id, null, title from photos`, Scan: pgx.RowToStructByPos[photo]}
	if rows, err = take(t, many.Stream(ctx, b.Router, parse(t, "3-4"), wrong)); len(rows) > 0 {
		t.Errorf("got %v", rows)
	}
	isPartial(t, err, parse(t, "3-4"), "", "3-4", "")
}

// An interrupt ends Stream while it waits for the server, and so does the time limit.
func TestStreamInterrupted(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.lock(ctx, t, 7)
	set := parse(t, "5-9")
	interrupted, interrupt := context.WithCancel(ctx)
	defer interrupt()
	q := photosOf(`true`)
	q.PerHost = 1
	var rows []photo
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		rows, err = take(t, many.Stream(interrupted, b.Router, set, q))
	}()
	b.awaitWaiting(ctx, t, 1)
	interrupt()
	<-ended
	if isPartial(t, err, set, "5-6", "7", "8-9"); len(rows) != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", rows, err)
	}

	q.Timeout = 50 * time.Millisecond
	_, err = take(t, many.Stream(ctx, b.Router, shards.SetOf(7), q))
	if p := isPartial(t, err, shards.SetOf(7), "", "7", ""); !errors.Is(p.Failed[0], context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	b.allFree(ctx, t, 4)
}

func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	if rows, err := take(t, many.Stream(ctx, b.Router, shards.SetOf(99), photosOf(`true`))); !errors.Is(err, shards.ErrNoShard) || len(rows) > 0 {
		t.Errorf("a shard too many: %v, %v", rows, err)
	}
	field := new(shards.FieldError)
	if rows, err := take(t, many.Stream(ctx, b.Router, b.All(), many.Query[photo]{})); !errors.As(err, &field) || len(rows) > 0 {
		t.Errorf("without Scan: %v, %v", rows, err)
	}
}
