package entities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// CleanOptions say how [Store.Clean] and [Store.Fill] go about it. The zero value is ready to use.
type CleanOptions struct {
	Workers   int           // shards of each host at a time. Defaults to 4
	PerSecond int           // entities of all workers together. Defaults to no limit
	Interval  time.Duration // from one look at all shards to the next. Defaults to 1 s
	Once      bool          // return when all shards have been looked at once
	// Log is told of errors, such as a host that is down; Clean goes on. Defaults to returning the first one.
	Log func(error)
}

// Counts are what a store has done since it was opened.
type Counts struct {
	repaired, filled, checked, added, removed, taken atomic.Int64
}

// Stats are for metrics.
type Stats struct {
	Repaired int64 // entities whose index rows a cleaner has put right, after writers that did not come to their end
	Filled   int64 // entities that [Store.Fill] has looked at
	Checked  int64 // index rows that it has looked at
	Added    int64 // index rows
	Removed  int64 // index rows
	Taken    int64 // entities that have no row in a unique index, because another one has it
}

// Stats returns what the store has done since it was opened.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{c.repaired.Load(), c.filled.Load(), c.checked.Load(), c.added.Load(), c.removed.Load(), c.taken.Load()}
}

// Lag is what is left to do.
type Lag struct {
	Waiting int           // works that are due
	Oldest  time.Duration // how long the oldest of them has been due
}

// Lag asks all shards what a cleaner has to do. In a cluster where cleaners keep up it is nothing, or a few seconds.
func (s *Store) Lag(ctx context.Context) (Lag, error) {
	all, err := many.Collect(ctx, s.r, s.all(), many.Query[Lag]{
		SQL: `select count(*), coalesce(extract(epoch from clock_timestamp() - min(due)), 0)::float8 from entity_work where due < clock_timestamp()`,
		Scan: func(row pgx.CollectableRow) (l Lag, err error) {
			var seconds float64
			err = row.Scan(&l.Waiting, &seconds)
			l.Oldest = time.Duration(seconds * float64(time.Second))
			return l, err
		},
	})
	var sum Lag
	for _, l := range all {
		sum.Waiting, sum.Oldest = sum.Waiting+l.Waiting, max(sum.Oldest, l.Oldest)
	}
	return sum, err
}

// all returns the shards that have entities.
func (s *Store) all() shards.Set {
	return shards.SetOfRanges(shards.Range{First: 0, Last: shards.Number(s.d.Shards - 1)})
}

const (
	lease     = 30 * time.Second // for which what a worker takes is its own
	batch     = 64
	inFlights = 8
)

// Clean does the work of writers that did not come to their end: it looks at the rows of entity_work that are due in every shard,
// the newest first, adds the index rows that are missing and removes those that are stale, until ctx ends, which is no error.
// Any number of cleaners may run, in any number of processes.
func (s *Store) Clean(ctx context.Context, opts CleanOptions) error {
	p := newPace(opts)
	for {
		err := many.Each(ctx, s.r, s.all(), many.Options{PerHost: p.Workers}, func(ctx context.Context, shard router.Shard) error {
			return s.cleanShard(ctx, shard, p)
		})
		if err != nil && ctx.Err() == nil {
			if opts.Log == nil {
				return err
			}
			opts.Log(err)
		}
		if opts.Once {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(p.Interval):
		}
	}
}

// cleanShard does all work that is due in a shard.
func (s *Store) cleanShard(ctx context.Context, shard router.Shard, p *pace) error {
	const query = `update entity_work set due = clock_timestamp() + $2::float8 * interval '1 s' where work_id in (
			select work_id from entity_work where due < clock_timestamp() order by work_id desc limit $1 for update skip locked
		) returning work_id, entity_id, before::text, after::text, due - $2::float8 * interval '0.5 s'`
	for {
		found, err := shard.Query(ctx, query, batch, lease.Seconds())
		if err != nil {
			return err
		}
		due, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (w work, err error) {
			var workID int64
			var before, after []byte
			if err := r.Scan(&workID, &w.id, &before, &after, &w.until); err != nil {
				return w, err
			}
			w.ids = []int64{workID}
			return w, s.read(&w, before, after)
		})
		if err != nil || len(due) == 0 {
			return err
		}
		var busy sync.WaitGroup
		failed := make(chan error, len(due))
		slots := make(chan struct{}, inFlights)
		for _, w := range due {
			if err := p.wait(ctx, 1); err != nil {
				failed <- err
				break
			}
			slots <- struct{}{}
			busy.Go(func() {
				defer func() { <-slots }()
				switch err := s.repair(ctx, shard, w); {
				case err == nil:
					s.counts.repaired.Add(1)
				case !errors.Is(err, ErrNotIndexed): // which is somebody's next time
					failed <- err
				}
			})
		}
		busy.Wait()
		if len(failed) > 0 {
			return <-failed
		}
	}
}

// pace is options with their defaults, and what they allow.
type pace struct {
	CleanOptions
	mu   sync.Mutex
	next time.Time // when the next entity may be taken
}

func newPace(opts CleanOptions) *pace {
	if opts.Workers <= 0 {
		opts.Workers = 4
	}
	if opts.Interval <= 0 {
		opts.Interval = time.Second
	}
	return &pace{CleanOptions: opts}
}

// wait waits until so many entities may be taken.
func (p *pace) wait(ctx context.Context, entities int) error {
	if p.PerSecond <= 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	pause := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(entities) * time.Second / time.Duration(p.PerSecond))
	p.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}
