package move_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// callBreak is how long a caller waits after each call, so that the move beside it gets the processor. Several calls are under way at
// any time all the same.
const callBreak = 5 * time.Millisecond

// crowd is writers and readers of shard 1 that use a router. Each call that fails fails the test.
type crowd struct {
	t       *testing.T
	shard   router.Shard
	stop    chan struct{}
	callers sync.WaitGroup
	calls   atomic.Int64

	mu    sync.Mutex // guards what follows
	wrote map[int64]bool
}

func (b *bundle) crowd(t *testing.T, ways ...func(context.Context, router.Shard) (int64, error)) *crowd {
	t.Helper()
	c := &crowd{t: t, shard: b.routed(t), stop: make(chan struct{}), wrote: map[int64]bool{}}
	for _, way := range ways {
		c.callers.Go(func() { c.loop(way) })
	}
	c.some("calls at first")
	return c
}

// loop calls over and over. What a call returns is the ID of a row that is there, each greater than the one before; 0 for none.
func (c *crowd) loop(way func(context.Context, router.Shard) (int64, error)) {
	for last := int64(0); ; c.calls.Add(1) {
		select {
		case <-c.stop:
			return
		case <-time.After(callBreak):
		}
		id, err := way(c.t.Context(), c.shard)
		if err != nil {
			c.t.Errorf("a call failed: %v", err)
			return
		}
		if id == 0 {
			continue
		}
		if id <= last {
			c.t.Errorf("ID %d after %d", id, last)
		}
		last = id
		c.mu.Lock()
		c.wrote[id] = true
		c.mu.Unlock()
	}
}

// some waits until some more calls were made.
func (c *crowd) some(what string) {
	c.t.Helper()
	begun, deadline := c.calls.Load(), time.Now().Add(time.Minute)
	for c.calls.Load() < begun+100 {
		if c.t.Failed() || time.Now().After(deadline) {
			c.t.Fatal("waited in vain for " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

// end ends the calls, and checks that all rows that were written are on a host, once, and no others.
func (c *crowd) end(b *bundle, host int) {
	c.t.Helper()
	close(c.stop)
	c.callers.Wait()
	b.equal("rows", b.text(host, `select count(*) from shard_00001.photos where title = 'load'`), fmt.Sprint(len(c.wrote)))
	conn := b.connect(host)
	defer conn.Close(context.Background())
	rows, _ := conn.Query(c.t.Context(), `select id from shard_00001.photos where title = 'load'`)
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		c.t.Fatal(err)
	}
	for _, id := range found {
		if !c.wrote[id] {
			c.t.Errorf("row %d was not written", id)
		}
		delete(c.wrote, id)
	}
	if len(c.wrote) > 0 {
		c.t.Errorf("%d rows are lost", len(c.wrote))
	}
}

const insert = `insert into photos (title) values ('load') returning id`

// The ways of writers and readers.
func returning(ctx context.Context, s router.Shard) (id int64, err error) {
	err = s.QueryRow(ctx, insert).Scan(&id)
	return id, err
}

func early(ctx context.Context, s router.Shard) (int64, error) { // the ID is taken before, perhaps on the old host
	id, err := s.NextID(ctx)
	if err == nil {
		_, err = s.Exec(ctx, `insert into photos (id, title) values ($1, 'load')`, id)
	}
	return int64(id), err
}

func batch(ctx context.Context, s router.Shard) (id int64, err error) {
	var b pgx.Batch
	b.Queue(insert).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	b.Queue(`select count(*) from likes`)
	return id, s.SendBatch(ctx, &b).Close()
}

func batchOfID(ctx context.Context, s router.Shard) (int64, error) { // which locks no table
	var b pgx.Batch
	b.Queue(`select next_id()`)
	return 0, s.SendBatch(ctx, &b).Close()
}

func inTx(ctx context.Context, s router.Shard) (id int64, err error) {
	err = router.Retry{}.Tx(ctx, s, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var count int
		if err := tx.QueryRow(ctx, `select count(*) from likes`).Scan(&count); err != nil {
			return err
		}
		return tx.QueryRow(ctx, insert).Scan(&id)
	})
	return id, err
}

func begun(ctx context.Context, s router.Shard) (id int64, err error) { // and run once
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return tx.QueryRow(ctx, insert).Scan(&id) })
	return id, err
}

func begunWithID(ctx context.Context, s router.Shard) (id int64, err error) {
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select next_id()`).Scan(&id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into photos (id, title) values ($1, 'load')`, id)
		return err
	})
	return id, err
}

func copied(ctx context.Context, s router.Shard) (int64, error) {
	id, err := s.NextID(ctx)
	if err == nil {
		_, err = s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "title"}, pgx.CopyFromRows([][]any{{int64(id), "load"}}))
	}
	return int64(id), err
}

func upsert(ctx context.Context, s router.Shard) (id int64, err error) {
	err = s.QueryRow(ctx, `insert into photos (title) values ('load') on conflict (id) do nothing returning id`).Scan(&id)
	return id, err
}

func reading(query string) func(context.Context, router.Shard) (int64, error) {
	return func(ctx context.Context, s router.Shard) (int64, error) {
		var count int64
		return 0, s.QueryRow(ctx, query).Scan(&count)
	}
}

// allWays are those of a service.
var allWays = []func(context.Context, router.Shard) (int64, error){
	returning, early, batch, batchOfID, inTx, begun, begunWithID, copied, upsert,
	reading(`select count(*) from events`), reading(`select n from events order by n limit 1`), reading(`select count(*) from photos where mood = 'glad'`),
	reading(`select next_id()`),
}

// A shard moves to and fro while services write and read: no call fails, and all rows are there once.
func TestMoveUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	c := b.crowd(t, allWays...)
	for _, to := range []string{"pg-b", "pg-a"} {
		b.cfg.Map, b.cfg.To = b.load(), to
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		c.some("calls with the shard on " + to)
	}
	c.end(b, 0)
	b.clean()
}

// A fence that comes down again, since somebody has granted something meanwhile, fails no call either.
func TestUnfencedUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.copied(false)
	c := b.crowd(t, allWays...)
	wait := b.whileFencing(0, `grant execute on function shard_00001.next_id() to pg_monitor`)
	down, tell := false, b.cfg.Events
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		down = down || e.Kind == progress.Unfenced
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	wait()
	if !down {
		t.Error("no fence came down")
	}
	c.some("calls after the move")
	c.end(b, 1)
	b.clean()
}
