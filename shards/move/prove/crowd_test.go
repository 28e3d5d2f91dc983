package prove_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// crowd is writers and a reader of a shard that use a router. They take breaks, since it is moves that are to be tried.
type crowd struct {
	c       *cluster
	number  shards.Number
	shard   router.Shard
	stop    chan struct{}
	callers sync.WaitGroup
	calls   atomic.Int64 // that were answered
	missed  atomic.Int64 // that waited for the shard for as long as a router does

	mayFail atomic.Bool // a server that the calls need is down, or was a moment ago

	mu    sync.Mutex // guards what follows
	wrote []string   // the titles of rows whose writing was acknowledged
}

const (
	callBreak = 20 * time.Millisecond
	callLimit = 30 * time.Second
)

// callers starts a crowd, which ends with the test.
func (c *cluster) callers() *crowd { return c.callersOf(c.direct, 1) }

// callersOf starts a crowd of a shard that has its map from a store.
func (c *cluster) callersOf(store mapstore.Store, n shards.Number) *crowd {
	c.t.Helper()
	r, err := router.New(c.t.Context(), router.Config{Maps: mapstore.NewSource(mapstore.SourceConfig{Store: store})})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(r.Close)
	s, err := r.ForShard(n)
	if err != nil {
		c.t.Fatal(err)
	}
	w := &crowd{c: c, number: n, shard: s, stop: make(chan struct{})}
	c.t.Cleanup(func() { close(w.stop); w.callers.Wait() })
	for writer := range 2 {
		last := int64(0)
		w.callers.Go(func() {
			w.loop(func(ctx context.Context, call int) error {
				return w.write(ctx, fmt.Sprintf("load %d.%d", writer, call), &last)
			})
		})
	}
	w.callers.Go(func() {
		w.loop(func(ctx context.Context, _ int) error {
			var count int
			return s.QueryRow(ctx, `select count(*) from events`).Scan(&count)
		})
	})
	w.some()
	return w
}

// write adds a row of its own title. Of a call that failed nobody knows whether it did.
func (w *crowd) write(ctx context.Context, title string, last *int64) error {
	var id int64
	if err := w.shard.QueryRow(ctx, `insert into photos (title) values ($1) returning id`, title).Scan(&id); err != nil {
		return err
	}
	if id <= *last {
		w.c.t.Errorf("ID %d after %d", id, *last)
	}
	*last = id
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = append(w.wrote, title)
	return nil
}

// loop calls over and over. A call fails only while it may, or because a shard that is fenced did not reappear within the
// router's limit: its mover is dead then, and the test is too slow.
func (w *crowd) loop(call func(ctx context.Context, n int) error) {
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		case <-time.After(callBreak):
		}
		mayFail := w.mayFail.Load()
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		err := call(ctx, n)
		cancel()
		switch {
		case err == nil:
			w.calls.Add(1)
		case errors.Is(err, router.ErrMoved):
			w.missed.Add(1)
		case !mayFail && !w.mayFail.Load():
			w.c.t.Errorf("a call failed: %v", err)
		}
	}
}

// some waits until more calls were answered.
func (w *crowd) some() {
	w.c.t.Helper()
	begun := w.calls.Load()
	w.c.eventually(func() string { return "no calls are answered" }, func() bool { return w.calls.Load() >= begun+10 })
}

// check checks that all rows whose writing was acknowledged are on a host, and none of them twice.
func (w *crowd) check(home string) {
	w.c.t.Helper()
	w.mu.Lock()
	wrote := append([]string(nil), w.wrote...)
	w.mu.Unlock()
	conn, err := w.c.connect(home)
	if err != nil {
		w.c.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, _ := conn.Query(w.c.t.Context(), fmt.Sprintf(`select title from shard_%05d.photos where title like 'load %%'`, w.number))
	titles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.c.t.Fatal(err)
	}
	times := map[string]int{}
	for _, title := range titles {
		if times[title]++; times[title] > 1 {
			w.c.t.Errorf("row %q is there %d times", title, times[title])
		}
	}
	for _, title := range wrote {
		if times[title] == 0 {
			w.c.t.Errorf("row %q is lost", title)
		}
	}
}
