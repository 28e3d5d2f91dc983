package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Fill fills an index in the background while the service runs. In each shard it reads entities from the newest to the oldest
// and adds missing index rows; table entity_fills stores its position. Then it checks all rows of the index, and removes
// those that no entity has. So it also repairs an index with any errors. All writers must know the index first.
//
// The next Fill continues where an interrupted one stopped. Several may run at the same time, in several processes: a worker
// owns a shard for a limited time. When Fill is done, it deletes the positions, so the next Fill starts with the newest
// entity. ctx governs all of it. Errors are [ErrNoIndex] and those of [many.Each]. Fill ignores opts.Interval, Once and Log.
func (s *Store) Fill(ctx context.Context, name string, opts CleanOptions) error {
	x := s.Index(name)
	if x.err != nil {
		return x.err
	}
	p := newPace(opts)
	const (
		begin = `insert into entity_fills (index_name, next_id) select $1, coalesce(max(added_id), 0) + 1 from entities on conflict do nothing`
		end   = `delete from entity_fills where index_name = $1 and next_id = 0`
	)
	each := func(fn func(context.Context, router.Shard) error) error {
		return many.Each(ctx, s.r, s.all(), many.Options{PerHost: p.Workers}, fn)
	}
	if err := each(func(ctx context.Context, shard router.Shard) error {
		_, err := shard.Exec(ctx, begin, name)
		return err
	}); err != nil {
		return err
	}
	for {
		var others atomic.Bool
		if err := each(func(ctx context.Context, shard router.Shard) error {
			left, err := x.fill(ctx, shard, p)
			if left {
				others.Store(true)
			}
			return err
		}); err != nil {
			return err
		}
		if !others.Load() {
			if err := each(func(ctx context.Context, shard router.Shard) error { return x.check(ctx, shard, p) }); err != nil {
				return err
			}
			return each(func(ctx context.Context, shard router.Shard) error {
				_, err := shard.Exec(ctx, end, name)
				return err
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.Interval): // then retry, in case the other worker died
		}
	}
}

// fill adds the index rows of a shard's entities. others reports whether another worker owns the shard.
func (x Index) fill(ctx context.Context, shard router.Shard, p *pace) (others bool, err error) {
	const (
		take = `update entity_fills set due = clock_timestamp() + $2::float8 * interval '1 s' where index_name = $1 and next_id > 0 and due < clock_timestamp()
			returning next_id, due`
		keep = `update entity_fills set next_id = $2::bigint, due = case when $2::bigint = 0 then 'epoch' else clock_timestamp() + $3::float8 * interval '1 s' end
			where index_name = $1 and due = $4 and clock_timestamp() < $5 returning next_id, due`
		open = `select exists (select from entity_fills where index_name = $1 and next_id > 0)`
	)
	read := fmt.Sprintf(`select added_id, id, %s::text from entities where added_id < $1 order by added_id desc limit $2`, x.s.project("body"))
	var next int64
	var due time.Time
	err = shard.QueryRow(ctx, take, x.table.Name, lease.Seconds()).Scan(&next, &due)
	if errors.Is(err, pgx.ErrNoRows) {
		return others, shard.QueryRow(ctx, open, x.table.Name).Scan(&others)
	}
	for err == nil && next > 0 {
		if err := p.wait(ctx, fillBatch); err != nil {
			return false, err
		}
		var found pgx.Rows
		if found, err = shard.Query(ctx, read, next, fillBatch); err != nil {
			break
		}
		var all []row
		var entities int
		var id ID
		var body []byte
		var last int64
		_, err = pgx.ForEachRow(found, []any{&last, &id, &body}, func() error {
			entities++
			d, err := parse(body)
			if values := x.table.values(d); err == nil && values != nil {
				all = append(all, row{x.at, values, id})
			}
			return err
		})
		until := due.Add(-lease / 2)
		if err == nil {
			err = x.add(ctx, all, until)
		}
		if err != nil {
			break
		}
		x.s.counts.filled.Add(int64(entities))
		if entities < fillBatch {
			last = 0
		}
		err = shard.QueryRow(ctx, keep, x.table.Name, last, lease.Seconds(), due, until).Scan(&next, &due)
		if errors.Is(err, pgx.ErrNoRows) {
			return true, nil // it was late, so add may have added nothing
		}
	}
	return false, err
}

// add adds missing index rows. It adds nothing after until: a worker that was suspended leaves them to the next one.
func (x Index) add(ctx context.Context, all []row, until time.Time) error {
	return x.s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		slices.SortFunc(some, row.compare) // the same order everywhere, so that there are no deadlocks
		tag, err := shard.Exec(ctx, t.fill, append(t.args(some), until)...)
		x.s.counts.added.Add(tag.RowsAffected())
		return err
	})
}

// check removes the rows of an index in a shard that no entity has. It reads a row and then the entity. A writer that changes
// the entity so that it has the row writes the row afterward, even if it exists. So if the row still has the version that
// check read, no entity has it.
func (x Index) check(ctx context.Context, shard router.Shard, p *pace) error {
	t := x.table
	var names []string
	for _, property := range t.Properties {
		names = append(names, quoted(property.Name))
	}
	list := strings.Join(append(names, "entity_id"), ", ")
	var after []any
	for {
		if err := p.wait(ctx, checkBatch); err != nil {
			return err
		}
		where, args := "", []any{checkBatch}
		if after != nil {
			var from []string
			for _, v := range after {
				args = append(args, v)
				from = append(from, fmt.Sprintf("$%d", len(args)))
			}
			where = fmt.Sprintf("where (%s) > (%s)", list, strings.Join(from, ", "))
		}
		found, err := shard.Query(ctx, fmt.Sprintf("select %s, xmin::text from %s %s order by %s limit $1", list, t.Name, where, list), args...)
		if err != nil {
			return err
		}
		var versions []string
		hints, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (row, error) {
			values, err := r.Values()
			if err != nil {
				return row{}, err
			}
			n := len(t.Properties)
			versions = append(versions, values[n+1].(string))
			return row{x.at, values[:n], values[n].(ID)}, nil
		})
		if err != nil || len(hints) == 0 {
			return err
		}
		if err := x.removeStray(ctx, shard, hints, versions); err != nil {
			return err
		}
		last := hints[len(hints)-1]
		after = append(slices.Clone(last.values), last.id)
	}
}

// removeStray removes the given index rows of a shard that no entity has.
func (x Index) removeStray(ctx context.Context, shard router.Shard, hints []row, versions []string) error {
	entities, err := x.s.fetch(ctx, collect(hints, func(r row) ID { return r.id }), x.s.project("body"))
	if err != nil {
		return err
	}
	x.s.counts.checked.Add(int64(len(hints)))
	var stray []row
	var kept []string
	for k, hint := range hints {
		var d document
		if e, ok := entities[hint.id]; ok {
			if d, err = parse(e.Body); err != nil {
				return err
			}
		}
		// A row in the wrong shard is stray too: no query reads it there.
		if x.s.hash(hint.values[0]) != shard.Number() || !slices.Equal(x.table.values(d), hint.values) {
			stray, kept = append(stray, hint), append(kept, versions[k])
		}
	}
	if len(stray) == 0 {
		return nil
	}
	tag, err := shard.Exec(ctx, x.table.stray, append(x.table.args(stray), kept)...)
	x.s.counts.removed.Add(tag.RowsAffected())
	return err
}
