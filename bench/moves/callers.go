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

// leastRows are in each table.
const leastRows = 100

// caller makes one call after another, without a time limit.
type caller struct {
	mu      sync.Mutex // guards what follows
	took    []float64  // durations of the calls since take, in milliseconds
	longest float64
	calls   int
	failed  int
	err     error // of the first that failed
	falling int   // IDs that are not greater than the one before
	last    int64 // ID
	acked   []int32
}

// load is all callers.
type load struct {
	shard, others []*caller
	stop          context.CancelFunc
	running       sync.WaitGroup
}

func (c *cluster) load(callers int) (*load, error) {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	shard, err := c.router.ForShard(moves)
	if err != nil {
		return nil, err
	}
	for n := range callers {
		writer, reader := &caller{}, &caller{}
		l.shard = append(l.shard, writer, reader)
		l.running.Go(func() {
			writer.loop(ctx, 0, func(ctx context.Context, i int) (id int64, err error) {
				return insert(ctx, shard, i%c.tables, n+1, i)
			})
		})
		l.running.Go(func() {
			reader.loop(ctx, 0, func(ctx context.Context, i int) (int64, error) {
				return 0, read(ctx, shard, i%c.tables, i)
			})
		})
	}
	for _, number := range []shards.Number{0, 2} { // one of each host
		other, err := c.router.ForShard(number)
		if err != nil {
			return nil, err
		}
		l.besides(ctx, other)
	}
	return l, nil
}

// insert writes a row of a writer, with a number.
func insert(ctx context.Context, shard router.Shard, into, writer, n int) (id int64, err error) {
	query := `INSERT INTO ` + table(into) + ` (writer, n, note) VALUES ($1, $2, 'written while the shard moves') RETURNING id`
	err = shard.QueryRow(ctx, query, writer, n).Scan(&id)
	return id, err
}

func read(ctx context.Context, shard router.Shard, from, i int) error {
	var note string
	return shard.QueryRow(ctx, `SELECT note FROM `+table(from)+` WHERE id = $1`, 1+i%leastRows).Scan(&note)
}

// besides adds a writer and a reader of another shard.
func (l *load) besides(ctx context.Context, shard router.Shard) {
	writer, reader := &caller{}, &caller{}
	l.others = append(l.others, writer, reader)
	l.running.Go(func() {
		writer.loop(ctx, otherPause, func(ctx context.Context, i int) (int64, error) {
			_, err := shard.Exec(ctx, `INSERT INTO beside (n) VALUES ($1)`, i)
			return 0, err
		})
	})
	l.running.Go(func() {
		reader.loop(ctx, otherPause, func(ctx context.Context, _ int) (int64, error) {
			var found bool
			return 0, shard.QueryRow(ctx, `SELECT EXISTS (SELECT FROM beside WHERE id = 1)`).Scan(&found)
		})
	})
}

// end stops the callers and waits until their calls have ended.
func (l *load) end() {
	l.stop()
	l.running.Wait()
}

// loop makes calls until ctx ends. ctx does not cancel the calls.
func (c *caller) loop(ctx context.Context, pause time.Duration, call func(ctx context.Context, i int) (id int64, err error)) {
	for i := 1; ctx.Err() == nil; i++ {
		c.once(i, call, pause > 0)
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}

// once makes one call, which nothing cancels.
func (c *caller) once(i int, call func(ctx context.Context, i int) (id int64, err error), keep bool) {
	began := time.Now()
	id, err := call(context.Background(), i)
	c.note(time.Since(began), i, id, err, keep)
}

func (c *caller) note(took time.Duration, i int, id int64, err error, keep bool) {
	ms := float64(took) / float64(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.longest = max(c.longest, ms)
	if keep {
		c.took = append(c.took, ms)
	}
	switch {
	case err != nil:
		if c.failed++; c.err == nil {
			c.err = err
		}
	case id != 0:
		if id <= c.last {
			c.falling++
		}
		c.last = id
		c.acked = append(c.acked, int32(i))
	}
}

// longest returns the longest duration of the calls that ended since the previous longest.
func longest(callers []*caller) (ms float64) {
	for _, c := range callers {
		c.mu.Lock()
		ms, c.longest = max(ms, c.longest), 0
		c.mu.Unlock()
	}
	return ms
}

// p999 returns the 99.9th percentile of the calls since the last time.
func p999(callers []*caller) float64 {
	var all []float64
	for _, c := range callers {
		c.mu.Lock()
		all = append(all, c.took...)
		c.took = nil
		c.mu.Unlock()
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*999/1000]
}

// settle waits until each caller has made another call, so that all earlier calls have ended.
func settle(ctx context.Context, callers []*caller) error {
	count := func(c *caller) int { c.mu.Lock(); defer c.mu.Unlock(); return c.calls }
	begun := make([]int, len(callers))
	for i, c := range callers {
		begun[i] = count(c)
	}
	for i, c := range callers {
		for count(c) < begun[i]+2 {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("a call is still running: %w", ctx.Err())
			}
		}
	}
	return nil
}
