package entities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// table is the SQL of an index. The arguments of its statements are an array for each column of values, then the entity IDs.
type table struct {
	IndexDefinition
	write  string // inserts rows, or gives them a new version; writes nothing after the time in its last argument
	fill   string // inserts missing rows, with the same time limit
	remove string // deletes rows, with the same time limit; returns how many, and whether it ended before that time
	stray  string // deletes rows that still have the given versions
	next   int    // number of the argument after the columns
}

func newTable(d IndexDefinition) table {
	var names, arrays, match []string
	for i, p := range d.Properties {
		names = append(names, quoted(p.Name))
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, columnTypes[p.Type]))
		match = append(match, fmt.Sprintf("t.%[1]s = a.%[1]s", quoted(p.Name)))
	}
	key := slices.Clone(names)
	names, match = append(names, "entity_id"), append(match, "t.entity_id = a.entity_id")
	arrays = append(arrays, fmt.Sprintf("$%d::uuid[]", len(names)))
	if !d.Unique {
		key = names
	}
	next := len(names) + 1
	list, unnest := strings.Join(names, ", "), strings.Join(arrays, ", ")
	insert := fmt.Sprintf("insert into %s as t (%s) select * from unnest(%s) where clock_timestamp() < $%d on conflict (%s) ", d.Name, list, unnest, next, strings.Join(key, ", "))
	remove := fmt.Sprintf("delete from %s t using unnest(%s%%s) a (%s%%s) where %s", d.Name, unnest, list, strings.Join(match, " and "))
	return table{
		IndexDefinition: d, next: next,
		// The update changes only the version of the row. So stray does not delete a row that a writer needs.
		write:  insert + "do update set entity_id = t.entity_id where t.entity_id = excluded.entity_id",
		fill:   insert + "do nothing",
		remove: fmt.Sprintf("with gone as ("+remove+" and clock_timestamp() < $%d returning 1) select count(*), clock_timestamp() < $%[3]d from gone", "", "", next),
		stray:  fmt.Sprintf(remove, fmt.Sprintf(", $%d::text[]", next), ", version") + " and t.xmin::text = a.version",
	}
}

// args returns the columns of rows.
func (t table) args(all []row) []any {
	args := make([]any, 0, t.next)
	for k := range t.next - 1 {
		args = append(args, t.column(all, k))
	}
	return args
}

// place is an index in a shard.
type place struct {
	index int
	shard shards.Number
}

func (s *Store) places(all []row) map[place][]row {
	of := map[place][]row{}
	for _, r := range all {
		p := place{r.index, s.hash(r.values[0])}
		of[p] = append(of[p], r)
	}
	return of
}

// each calls fn for each index and shard of some rows, several at a time, and returns the first error.
func (s *Store) each(ctx context.Context, all []row, fn func(context.Context, router.Shard, table, []row) error) error {
	const atOnce = 8
	of := s.places(all)
	var (
		first error
		once  sync.Once
		busy  sync.WaitGroup
		slots = make(chan struct{}, atOnce)
	)
	do := func(p place, some []row) {
		shard, err := s.r.ForShard(p.shard)
		if err == nil {
			err = fn(ctx, shard, s.indexes[p.index], some)
		}
		if err != nil {
			once.Do(func() { first = fmt.Errorf("%s, shard %d: %w", s.indexes[p.index].Name, p.shard, err) })
		}
	}
	for p, some := range of {
		if len(of) == 1 {
			do(p, some)
			break
		}
		slots <- struct{}{}
		busy.Go(func() {
			defer func() { <-slots }()
			do(p, some)
		})
	}
	busy.Wait()
	return first
}

// write writes index rows. It returns [ErrTaken] if a unique index has another entity, and [ErrNotIndexed] if the time is
// after until.
func (s *Store) write(ctx context.Context, all []row, until time.Time) error {
	return s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		if err := s.step("write"); err != nil {
			return err
		}
		tag, err := shard.Exec(ctx, t.write, append(t.args(some), until)...)
		if err != nil || int(tag.RowsAffected()) == len(some) {
			s.counts.added.Add(tag.RowsAffected())
			return err
		}
		var late bool
		if err := shard.QueryRow(ctx, `select clock_timestamp() >= $1`, until).Scan(&late); err != nil || late || !t.Unique {
			return fmt.Errorf("too late: %w", ErrNotIndexed)
		}
		return ErrTaken
	})
}

// remove removes index rows. It returns [ErrNotIndexed] if the time is after until.
func (s *Store) remove(ctx context.Context, all []row, until time.Time) error {
	return s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		if err := s.step("remove"); err != nil {
			return err
		}
		var gone int64
		var inTime bool
		err := shard.QueryRow(ctx, t.remove, append(t.args(some), until)...).Scan(&gone, &inTime)
		s.counts.removed.Add(gone)
		if err == nil && !inTime {
			err = fmt.Errorf("too late: %w", ErrNotIndexed)
		}
		return err
	})
}
