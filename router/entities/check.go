package entities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// add adds missing index rows. It returns those rows of unique indexes whose values other entities have.
func (s *Store) add(ctx context.Context, all []row) (taken []row, err error) {
	var mu sync.Mutex
	err = s.each(ctx, all, func(ctx context.Context, shard router.Shard, t table, some []row) error {
		tag, err := shard.Exec(ctx, t.fill, t.args(some)...)
		s.counts.added.Add(tag.RowsAffected())
		if err != nil || !t.Unique || int(tag.RowsAffected()) == len(some) {
			return err
		}
		duplicates, err := s.addContested(ctx, shard, t, some)
		mu.Lock()
		defer mu.Unlock()
		taken = append(taken, duplicates...)
		return err
	})
	return taken, err
}

// addContested returns those rows of a unique index whose values other entities have. It adds those whose values other entities
// have only in stray rows.
func (s *Store) addContested(ctx context.Context, shard router.Shard, t table, some []row) (taken []row, err error) {
	found, err := shard.Query(ctx, t.holders, t.args(some)...)
	if err != nil {
		return nil, err
	}
	holders, err := pgx.CollectRows(found, t.scan(some[0].index))
	if err != nil {
		return nil, err
	}
	stray, err := s.strays(ctx, shard, t, holders)
	if err != nil {
		return nil, err
	}
	has := func(rows []row, r row) bool { // those of one page may be of two entities with one value
		return slices.ContainsFunc(rows, func(o row) bool { return o.id != r.id && slices.Equal(o.values, r.values) })
	}
	for _, r := range some {
		if has(holders, r) && !has(stray, r) {
			taken = append(taken, r)
		}
	}
	if len(taken) > 0 { // the value may have changed hands since the entity was read
		states, err := s.look(ctx, collect(taken, func(r row) ID { return r.id }))
		if err != nil {
			return nil, err
		}
		taken = slices.DeleteFunc(taken, func(r row) bool { return !t.has(states[r.id].properties, r.values) })
	}
	if len(stray) > 0 {
		if _, err := shard.Exec(ctx, t.stray, t.args(stray)...); err != nil {
			return nil, err
		}
		tag, err := shard.Exec(ctx, t.fill, t.args(some)...)
		s.counts.added.Add(tag.RowsAffected())
		return taken, err
	}
	return taken, nil
}

// checkSome removes those of the next rows of an index in a shard that no entity has. It begins after a row, and returns the last
// one, or nil at the end, and how many it has compared.
func (x Index) checkSome(ctx context.Context, shard router.Shard, after []any, limit int) ([]any, int, error) {
	t := x.table
	var names []string
	for _, p := range t.Properties {
		names = append(names, quoted(p.Name))
	}
	key := strings.Join(append(names, "entity_id"), ", ")
	where, args := "", []any{limit}
	if after != nil {
		var from []string
		for _, v := range after {
			args = append(args, v)
			from = append(from, fmt.Sprintf("$%d", len(args)))
		}
		where = fmt.Sprintf("where (%s) > (%s)", key, strings.Join(from, ", "))
	}
	found, err := shard.Query(ctx, fmt.Sprintf("select %s from %s %s order by %s limit $1", t.list, t.Name, where, key), args...)
	if err != nil {
		return nil, 0, err
	}
	hints, err := pgx.CollectRows(found, t.scan(x.at))
	if err != nil || len(hints) == 0 {
		return nil, 0, err
	}
	if err := x.s.removeStrays(ctx, shard, t, hints); err != nil {
		return nil, 0, err
	}
	x.s.counts.checked.Add(int64(len(hints)))
	if len(hints) < limit {
		return nil, len(hints), nil
	}
	last := hints[len(hints)-1]
	return append(slices.Clone(last.values), last.id), len(hints), nil
}

// removeStrays removes those rows of an index in a shard that no entity has, if they have the versions of these.
func (s *Store) removeStrays(ctx context.Context, shard router.Shard, t table, some []row) error {
	stray, err := s.strays(ctx, shard, t, some)
	if err != nil || len(stray) == 0 {
		return err
	}
	tag, err := shard.Exec(ctx, t.stray, t.args(stray)...)
	s.counts.removed.Add(tag.RowsAffected())
	return err
}
