package entities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	// WalkPerSecond is how many entities and index rows a second are compared besides, from the newest change back. Defaults
	// to 20; a negative number means none.
	WalkPerSecond int
	// Log gets errors, such as that of a host that is down, and Clean continues. If nil, Clean returns the first error.
	Log func(error)
}

const (
	grace     = 6 * time.Second  // how long a cleaner leaves work to its writer
	lease     = 30 * time.Second // how long other cleaners leave work to the cleaner that has taken it
	batch     = 64
	inFlights = 8
	groupSize = 64 // shards in one statement that looks for work
)

// Clean finishes the work of writers that did not finish it: in every shard it takes the due rows of entity_work, the newest
// first, adds missing index rows and removes stale ones. Besides, it slowly compares all entities with their index rows, and all
// index rows with their entities: see [CleanOptions]. It runs until ctx ends, and then returns nil. Any number of cleaners
// may run, in any number of processes.
//
// A pass in which nothing is due sends one statement for each 64 shards of a host.
func (s *Store) Clean(ctx context.Context, opts CleanOptions) error {
	p := newPace(opts)
	w := newWalk(s, p)
	for {
		err := errors.Join(s.pass(ctx, p), w.step(ctx))
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

// pass does the due work of all shards.
func (s *Store) pass(ctx context.Context, p *pace) error {
	due, err := s.shardsWithWork(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	return many.Each(ctx, s.r, shards.SetOf(due...), many.Options{PerHost: p.Workers}, func(ctx context.Context, shard router.Shard) error {
		return s.cleanShard(ctx, shard, p)
	})
}

// shardsWithWork returns the shards that have due work, and those that it cannot look at, such as one that moves.
func (s *Store) shardsWithWork(ctx context.Context) ([]shards.Number, error) {
	groups := map[string][]router.Shard{} // by host
	var all [][]router.Shard
	for n := range s.all().All() {
		shard, err := s.r.ForShard(n)
		if err != nil {
			return nil, err
		}
		host := shard.Host().Name
		if groups[host] = append(groups[host], shard); len(groups[host]) == groupSize {
			all = append(all, groups[host])
			delete(groups, host)
		}
	}
	for _, group := range groups {
		all = append(all, group)
	}
	var (
		found []shards.Number
		mu    sync.Mutex
		busy  sync.WaitGroup
		slots = make(chan struct{}, inFlights)
	)
	for _, group := range all {
		slots <- struct{}{}
		busy.Go(func() {
			defer func() { <-slots }()
			some, err := withWork(ctx, group)
			if err != nil {
				some = nil
				for _, shard := range group {
					some = append(some, shard.Number())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, some...)
		})
	}
	busy.Wait()
	return found, ctx.Err()
}

// withWork returns those of some shards of one host that have due work.
func withWork(ctx context.Context, group []router.Shard) ([]shards.Number, error) {
	each := make([]string, len(group))
	for k, shard := range group {
		each[k] = fmt.Sprintf("select %d::int where exists (select from %s.entity_work where %s)", shard.Number(), quoted(shard.Schema()), isDue)
	}
	found, err := group[0].Query(ctx, strings.Join(each, " union all "))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(r pgx.CollectableRow) (shards.Number, error) {
		var n int32
		err := r.Scan(&n)
		return shards.Number(n), err
	})
}

// cleanShard does all due work of a shard.
func (s *Store) cleanShard(ctx context.Context, shard router.Shard, p *pace) error {
	query := `update entity_work set taken = clock_timestamp() where version in (
			select version from entity_work where ` + isKnown + ` and current_setting('transaction_isolation') = 'read committed' and ` + isDue + `
			order by version desc limit $1 for update skip locked
		) returning version, entity_id, before::text, after::text`
	var first error
	for rounds := 0; ; rounds++ {
		found, err := shard.Query(ctx, query, batch, s.definitions)
		if err != nil {
			return err
		}
		due, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (w work, err error) {
			var before, after []byte
			if err := r.Scan(&w.version, &w.id, &before, &after); err != nil {
				return w, err
			}
			return w, s.read(&w, before, after)
		})
		if err == nil && len(due) == 0 && rounds == 0 {
			_, err = s.compareShard(ctx, shard) // another cleaner has taken the work, or the definitions differ
		}
		if err != nil || len(due) == 0 {
			return errors.Join(first, err)
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
				if err := s.repair(ctx, shard, w); err != nil {
					failed <- s.note(ctx, shard, w, err)
					return
				}
				s.counts.repaired.Add(1)
			})
		}
		busy.Wait()
		if len(failed) > 0 && first == nil {
			first = <-failed // the others are noted
		}
		if ctx.Err() != nil {
			return first
		}
	}
}

// note writes the error of an attempt into entity_work, and returns it. The lease of the work delays the next attempt.
func (s *Store) note(ctx context.Context, shard router.Shard, w work, err error) error {
	err = fmt.Errorf("entity %x: %w", w.id, err)
	_, failed := shard.Exec(ctx, `update entity_work set error = $2 where version = $1`, w.version, err.Error())
	return errors.Join(err, failed)
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
	if opts.WalkPerSecond == 0 {
		opts.WalkPerSecond = 20
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
