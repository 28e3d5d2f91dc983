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

// CleanOptions are options of [Store.Clean] and [Store.Fill]. The zero value is ready to use.
type CleanOptions struct {
	Workers   int           // number of shards of each host at a time. Defaults to 4
	PerSecond int           // limit of entities a second, for all workers together. Defaults to no limit
	Interval  time.Duration // between two passes over all shards. Defaults to 1 s
	Once      bool          // return after one pass over all shards
	// Log gets errors, such as that of a host that is down, and Clean continues. If nil, Clean returns the first error.
	Log func(error)
}

// Counts are counters of a store's work since it was opened.
type Counts struct {
	repaired, filled, checked, added, removed, taken atomic.Int64
}

// Stats are for metrics.
type Stats struct {
	Repaired int64 `json:"repaired"` // entities whose index rows a cleaner repaired because the writer did not finish
	Filled   int64 `json:"filled"`   // entities that [Store.Fill] has read
	Checked  int64 `json:"checked"`  // index rows that Fill has checked
	Added    int64 `json:"added"`    // index rows added
	Removed  int64 `json:"removed"`  // index rows removed
	Taken    int64 `json:"taken"`    // entities without a row in a unique index, because another entity has the value
}

// Stats returns counters of the store's work since it was opened.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{c.repaired.Load(), c.filled.Load(), c.checked.Load(), c.added.Load(), c.removed.Load(), c.taken.Load()}
}

// Lag is the work that waits for a cleaner.
type Lag struct {
	Waiting int           // number of due rows in entity_work
	Oldest  time.Duration // how long the oldest of them has been due
}

// Lag queries all shards for the work that waits for a cleaner. If cleaners keep up, there is none, or it is a few seconds
// old.
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
	lease     = 30 * time.Second // how long a worker owns the work that it takes
	batch     = 64
	inFlights = 8
)

// Clean finishes the work of writers that did not finish it. In every shard it takes the due rows of entity_work, the newest
// first, adds missing index rows and removes stale ones. It runs until ctx ends, and then returns nil. Any number of cleaners
// may run, in any number of processes.
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

// cleanShard does all due work of a shard.
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
				case !errors.Is(err, ErrNotIndexed): // a later pass does that work
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

// pace is the options with their defaults, and the rate limit.
type pace struct {
	CleanOptions
	mu   sync.Mutex
	next time.Time // when the next entity may start
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

// wait waits until the rate allows the given number of entities.
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
