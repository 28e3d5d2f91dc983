package moves

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// otherPause is how long a caller of another shard waits between two calls, so that it measures without adding much load.
const otherPause = time.Millisecond

// load is all callers. Of those of a shard a writer and a reader come in turn.
type load struct {
	shard  []*caller // of the shards that move
	others []*caller // of other shards
	stop   context.CancelFunc
	ctx    context.Context // of the loops; calls have none
	loops  sync.WaitGroup
}

func newLoad() *load {
	l := &load{}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// load starts callers of the shard that moves, as fast as they can, and of two other shards, one on each host.
func (c *cluster) load(callers int) (*load, error) {
	handles := map[shards.Number]router.Shard{}
	for _, n := range []shards.Number{0, moved, 2} {
		var err error
		if handles[n], err = c.router.ForShard(n); err != nil {
			return nil, err
		}
	}
	l := newLoad()
	for w := range callers {
		writer, reader := &caller{}, &caller{}
		l.shard = append(l.shard, writer, reader)
		l.loop(0, func(i int) {
			writer.call(i, false, func(i int) (int64, error) { return insert(handles[moved], i%c.tables, w+1, i) })
		})
		l.loop(0, func(i int) {
			reader.call(i, false, func(i int) (int64, error) { return 0, read(handles[moved], i%c.tables, i) })
		})
	}
	for _, n := range []shards.Number{0, 2} {
		writer, reader := &caller{}, &caller{}
		l.others = append(l.others, writer, reader)
		l.loop(otherPause, func(i int) {
			writer.call(i, true, func(i int) (int64, error) {
				_, err := handles[n].Exec(context.Background(), `INSERT INTO beside (n) VALUES ($1)`, i)
				return 0, err
			})
		})
		l.loop(otherPause, func(i int) {
			reader.call(i, true, func(int) (int64, error) {
				var found bool
				return 0, handles[n].QueryRow(context.Background(), `SELECT EXISTS (SELECT FROM beside WHERE id = 1)`).Scan(&found)
			})
		})
	}
	return l, nil
}

// loadAll starts callers that change shards with each call, as fast as they can. It also returns them by shard.
func (c *cluster) loadAll(callers int) (*load, [][]*caller, error) {
	handles, by := make([]router.Shard, c.shards), make([][]*caller, c.shards)
	for n := range handles {
		var err error
		if handles[n], err = c.router.ForShard(shards.Number(n)); err != nil {
			return nil, nil, err
		}
		for range 2 * callers {
			by[n] = append(by[n], &caller{})
		}
	}
	l := newLoad()
	l.shard = slices.Concat(by...)
	for w := range callers {
		l.loop(0, func(i int) {
			n := (i + w) % c.shards
			by[n][2*w].call(i, false, func(i int) (int64, error) { return insert(handles[n], 0, w+1, i) })
		})
		l.loop(0, func(i int) {
			n := (i + w) % c.shards
			by[n][2*w+1].call(i, false, func(i int) (int64, error) { return 0, read(handles[n], 0, i) })
		})
	}
	return l, by, nil
}

// insert writes a row of a writer, with a number.
func insert(shard router.Shard, into, writer, n int) (id int64, err error) {
	query := `INSERT INTO ` + table(into) + ` (writer, n, note) VALUES ($1, $2, 'written while the shard moves') RETURNING id`
	err = shard.QueryRow(context.Background(), query, writer, n).Scan(&id)
	return id, err
}

func read(shard router.Shard, from, i int) error {
	var note string
	return shard.QueryRow(context.Background(), `SELECT note FROM `+table(from)+` WHERE id = $1`, 1+i%leastRows).Scan(&note)
}

// loop calls fn with 1, 2 and so on, until the load ends.
func (l *load) loop(pause time.Duration, fn func(i int)) {
	l.loops.Go(func() {
		for i := 1; l.ctx.Err() == nil; i++ {
			fn(i)
			if pause > 0 {
				time.Sleep(pause)
			}
		}
	})
}

// end stops the callers and waits until their calls have ended.
func (l *load) end() {
	l.stop()
	l.loops.Wait()
}

// settle waits until each caller has made another call, so that all earlier calls have ended.
func (l *load) settle(ctx context.Context) error {
	callers := slices.Concat(l.shard, l.others)
	begun := make([]int, len(callers))
	for i, c := range callers {
		begun[i] = c.count()
	}
	for i, c := range callers {
		for c.count() < begun[i]+2 {
			if err := sleep(ctx, time.Millisecond); err != nil {
				return fmt.Errorf("a call is still running: %w", err)
			}
		}
	}
	return nil
}

// usual lets the callers run for a time while nothing moves. Their first calls, which open connections, do not count.
func (l *load) usual(ctx context.Context, turn time.Duration) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	_, _ = longest(l.shard), p999(l.others)
	return sleep(ctx, turn)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
