package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// table is the SQL of an index. The arguments of its statements are an array for each column: the properties, the entity IDs,
// and the versions.
type table struct {
	IndexDefinition
	list    string // of its columns
	write   string // inserts rows, or raises their versions. A unique index reports the rows that the entity has now
	fill    string // inserts missing rows
	remove  string // deletes rows that have the given versions or older ones
	stray   string // deletes rows that have exactly the given versions
	holders string // returns the rows of other entities that have the values of these
}

func newTable(d IndexDefinition) table {
	var names, arrays, match []string
	for i, p := range d.Properties {
		names = append(names, quoted(p.Name))
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, columnTypes[p.Type]))
		match = append(match, fmt.Sprintf("t.%[1]s = a.%[1]s", quoted(p.Name)))
	}
	n := len(names)
	key, values := slices.Clone(names), strings.Join(match, " and ")
	names = append(names, "entity_id", "entity_version")
	arrays = append(arrays, fmt.Sprintf("$%d::uuid[]", n+1), fmt.Sprintf("$%d::bigint[]", n+2))
	conflict := "t.entity_version < excluded.entity_version"
	if d.Unique {
		conflict = "t.entity_id = excluded.entity_id"
	} else {
		key = append(key, "entity_id")
	}
	list := strings.Join(names, ", ")
	given := fmt.Sprintf("unnest(%s) a (%s)", strings.Join(arrays, ", "), list)
	insert := fmt.Sprintf("insert into %s as t (%s) select %[2]s from %s on conflict (%s) do ", d.Name, list, given, strings.Join(key, ", "))
	remove := fmt.Sprintf("delete from %s t using %s where %s and t.entity_id = a.entity_id and t.entity_version ", d.Name, given, values)
	return table{
		IndexDefinition: d, list: list,
		write:   insert + "update set entity_version = greatest(t.entity_version, excluded.entity_version) where " + conflict,
		fill:    insert + "nothing",
		remove:  remove + "<= a.entity_version",
		stray:   remove + "= a.entity_version",
		holders: fmt.Sprintf("select t.%s from %s t join %s on %s where t.entity_id <> a.entity_id", strings.Join(names, ", t."), d.Name, given, values),
	}
}

// args returns the columns of rows.
func (t table) args(all []row) []any {
	args := make([]any, len(t.Properties)+2)
	for k := range args {
		args[k] = t.column(all, k)
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

// each calls fn for each index and shard of some rows, several at a time. It returns the first error that is not [ErrTaken], or else
// the first one.
func (s *Store) each(ctx context.Context, all []row, fn func(context.Context, router.Shard, table, []row) error) error {
	const atOnce = 8
	of := s.places(all)
	var (
		first error
		mu    sync.Mutex
		busy  sync.WaitGroup
		slots = make(chan struct{}, atOnce)
	)
	do := func(p place, some []row) {
		shard, err := s.r.ForShard(p.shard)
		if err == nil {
			slices.SortFunc(some, row.compare) // the same order everywhere, so that there are no deadlocks
			err = fn(ctx, shard, s.indexes[p.index], some)
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if first == nil || errors.Is(first, ErrTaken) && !errors.Is(err, ErrTaken) {
				first = fmt.Errorf("%s, shard %d: %w", s.indexes[p.index].Name, p.shard, err)
			}
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

// write writes index rows. It returns [ErrTaken] if a unique index has another entity.
func (s *Store) write(ctx context.Context, all []row) error {
	return s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		if err := s.step("write"); err != nil {
			return err
		}
		tag, err := shard.Exec(ctx, t.write, t.args(some)...)
		s.counts.added.Add(tag.RowsAffected())
		if err == nil && t.Unique && int(tag.RowsAffected()) < len(some) {
			err = s.contest(ctx, shard, t, some)
		}
		return err
	})
}

// remove removes index rows that have the versions of these rows or older ones.
func (s *Store) remove(ctx context.Context, all []row) error {
	return s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		if err := s.step("remove"); err != nil {
			return err
		}
		tag, err := shard.Exec(ctx, t.remove, t.args(some)...)
		s.counts.removed.Add(tag.RowsAffected())
		return err
	})
}
