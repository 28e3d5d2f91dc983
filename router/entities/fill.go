package entities

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
)

const (
	fillBatch  = 2000 // entities
	checkBatch = 1000 // index rows
)

// ErrNotFilled means that some entities cannot have a row in an index: others have their values in a unique index, or the values
// are too long. Change those entities and fill the index again.
var ErrNotFilled = errors.New("some entities cannot have a row in the index")

// Fill fills an index in the background while the service runs. From then on all programs must know the index: Put and Delete of
// others return a [DefinitionError]. In each shard Fill reads entities from the newest to the oldest and adds missing index
// rows; table entity_indexes stores its position. Then it checks all rows of the index, and removes those that no entity has. So
// it also repairs an index with any errors.
//
// The next Fill continues where an interrupted one stopped, unless a table of the index was created again. Several may run at the
// same time, in several processes. ctx governs all of it. Errors are [ErrNoIndex], [DefinitionError], [ErrNotFilled] with
// [ErrTaken] or [ErrTooLong], and those of [many.Each]. Fill ignores opts.Interval, Once, WalkPerSecond and Log.
func (s *Store) Fill(ctx context.Context, name string, opts CleanOptions) error {
	x := s.Index(name)
	if x.err != nil {
		return x.err
	}
	f := &filling{Index: x, pace: newPace(opts)}
	err := s.compare(ctx)
	if err == nil {
		err = f.each(ctx, f.require)
	}
	if err == nil {
		err = f.begin(ctx)
	}
	for again := true; err == nil && again; {
		if again, err = f.round(ctx); again && err == nil {
			err = f.sleep(ctx) // another worker has a shard, and may die
		}
	}
	if err == nil {
		err = f.each(ctx, f.check)
	}
	if err == nil {
		err = f.end(ctx)
	}
	return err
}

// filling is one call of [Store.Fill].
type filling struct {
	Index
	*pace
	run string // identifies the tables of the index in all shards

	mu    sync.Mutex
	cause error // the first reason why an entity has no row
}

func (f *filling) each(ctx context.Context, fn func(context.Context, router.Shard) error) error {
	return many.Each(ctx, f.s.r, f.s.all(), many.Options{PerHost: f.Workers}, fn)
}

func (f *filling) sleep(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.Interval):
		return nil
	}
}

// require makes writers that do not know the index fail, and waits for the end of those that have begun.
func (f *filling) require(ctx context.Context, shard router.Shard) error {
	tag, err := shard.Exec(ctx, `update entity_indexes set required = true where name = $1 and not required`, f.table.Name)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return awaitWriters(ctx, shard)
}

// awaitWriters waits for the end of all transactions that have begun to write entities.
func awaitWriters(ctx context.Context, shard router.Shard) error {
	const query = `select coalesce(array_agg(virtualtransaction), '{}') from pg_locks
		where locktype = 'relation' and relation = 'entities'::regclass and mode = 'RowExclusiveLock'
			and database = (select oid from pg_database where datname = current_database()) and ($1::text[] is null or virtualtransaction = any ($1))`
	var writers []string
	for {
		if err := shard.QueryRow(ctx, query, writers).Scan(&writers); err != nil || len(writers) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// begin begins a run, or continues one of the same tables.
func (f *filling) begin(ctx context.Context) error {
	all, err := f.states(ctx)
	if err != nil {
		return err
	}
	made := collectStates(all, func(i IndexState) string { return i.made })
	f.run = fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(made, " "))))
	restart := !slices.ContainsFunc(all, func(i IndexState) bool { return i.run != f.run || i.next > 0 })
	const query = `update entity_indexes set run = $2, next_id = (select coalesce(max(added_id), 0) + 1 from entities), refused = 0, taken = null,
			filled = filled and $3::boolean
		where name = $1 and (run is distinct from $2 or $3::boolean)`
	return f.each(ctx, func(ctx context.Context, shard router.Shard) error {
		_, err := shard.Exec(ctx, query, f.table.Name, f.run, restart)
		return err
	})
}

// states returns what each shard says of the index, in the order of the shards.
func (f *filling) states(ctx context.Context) ([]IndexState, error) {
	return many.Collect(ctx, f.s.r, f.s.all(), many.Query[IndexState]{SQL: readIndexes + ` where name = $1`, Args: []any{f.table.Name}, Scan: scanIndex})
}

func collectStates[T any](all []IndexState, get func(IndexState) T) []T {
	values := make([]T, len(all))
	for i, s := range all {
		values[i] = get(s)
	}
	return values
}

// round fills the shards that no other worker has, and reports whether others have some.
func (f *filling) round(ctx context.Context) (bool, error) {
	var others atomic.Bool
	err := f.each(ctx, func(ctx context.Context, shard router.Shard) error {
		left, err := f.fill(ctx, shard)
		if left {
			others.Store(true)
		}
		return err
	})
	return others.Load(), err
}

// fill adds the index rows of a shard's entities. others reports whether another worker has the shard.
func (f *filling) fill(ctx context.Context, shard router.Shard) (others bool, err error) {
	var (
		free = fmt.Sprintf(`(taken is null or taken not between clock_timestamp() - interval '%d s' and clock_timestamp())`, int(lease.Seconds()))
		take = `update entity_indexes set taken = clock_timestamp() where name = $1 and run = $2 and next_id > 0 and ` + free + ` returning next_id, taken`
		keep = `update entity_indexes set next_id = $4, refused = refused + $5, taken = case when $4::bigint > 0 then clock_timestamp() end
			where name = $1 and run = $2 and taken = $3 returning next_id, coalesce(taken, 'epoch')`
		open = `select exists (select from entity_indexes where name = $1 and next_id > 0)`
		read = `select added_id, id, version, ` + f.s.project("body") + `::text from entities where added_id < $1 order by added_id desc limit $2`
	)
	var next int64
	var taken time.Time
	err = shard.QueryRow(ctx, take, f.table.Name, f.run).Scan(&next, &taken)
	if errors.Is(err, pgx.ErrNoRows) {
		return others, shard.QueryRow(ctx, open, f.table.Name).Scan(&others)
	}
	for err == nil && next > 0 {
		if err := f.wait(ctx, fillBatch); err != nil {
			return false, err
		}
		var found pgx.Rows
		if found, err = shard.Query(ctx, read, next, fillBatch); err != nil {
			break
		}
		var (
			all           []row
			count         int
			refused       int64
			id            ID
			last, version int64
			text          []byte
		)
		if _, err = pgx.ForEachRow(found, []any{&last, &id, &version, &text}, func() error {
			count++
			d, err := projected(text)
			some, tooLong := f.table.values(d)
			for _, values := range some {
				all = append(all, row{f.at, values, id, version})
			}
			if tooLong {
				refused++
				f.because(fmt.Errorf("entity %x: %w", id, ErrTooLong))
			}
			return err
		}); err != nil {
			break
		}
		duplicates, failed := f.s.add(ctx, all)
		if err = failed; err != nil {
			break
		}
		for _, r := range duplicates {
			refused++
			f.because(fmt.Errorf("entity %x: %w", r.id, ErrTaken))
		}
		f.s.counts.taken.Add(int64(len(duplicates)))
		f.s.counts.filled.Add(int64(count))
		if count < fillBatch {
			last = 0
		}
		err = shard.QueryRow(ctx, keep, f.table.Name, f.run, taken, last, refused).Scan(&next, &taken)
		if errors.Is(err, pgx.ErrNoRows) {
			return true, nil // another worker has taken the shard, or a table was created again
		}
	}
	return false, err
}

// because keeps the first reason why an entity has no row.
func (f *filling) because(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		f.cause = cause
	}
}

// end marks the index as filled, unless entities have no row.
func (f *filling) end(ctx context.Context) error {
	all, err := f.states(ctx)
	if err != nil {
		return err
	}
	var refused int64
	for _, i := range all {
		if i.run != f.run {
			return fmt.Errorf("%s: a table was created again during the filling: run it once more", f.table.Name)
		}
		refused += i.refused
	}
	if refused > 0 {
		if f.cause == nil {
			f.cause = errors.New("an earlier worker has found them")
		}
		return fmt.Errorf("%s, %d entities: %w: %w", f.table.Name, refused, ErrNotFilled, f.cause)
	}
	return f.each(ctx, func(ctx context.Context, shard router.Shard) error {
		_, err := shard.Exec(ctx, `update entity_indexes set filled = true where name = $1 and run = $2`, f.table.Name, f.run)
		return err
	})
}

// check removes the rows of an index in a shard that no entity has.
func (f *filling) check(ctx context.Context, shard router.Shard) error {
	var after []any
	for {
		if err := f.wait(ctx, checkBatch); err != nil {
			return err
		}
		var err error
		if after, _, err = f.checkSome(ctx, shard, after, checkBatch); err != nil || after == nil {
			return err
		}
	}
}
