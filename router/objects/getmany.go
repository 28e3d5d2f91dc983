package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// few is the largest number of objects that the statement for few objects returns.
const few = 4

// row is a row of an object's table.
type row struct {
	Local int64
	Data  []byte
	TS    time.Time
}

// GetMany returns objects in the order of ids. It queries each shard once, and those of a host together. It leaves out objects
// that do not exist or are deleted. An ID that is in ids twice is in the result twice. If no object of this type can have one
// of the IDs, GetMany returns the error of [Type.Get] and queries nothing. If some shards fail, it returns a
// [many.UnreadError] and the objects of all other shards.
func (t *Type[T]) GetMany(ctx context.Context, ids []shards.ID) ([]Object[T], error) {
	found := map[shards.ID]Object[T]{}
	locals := map[shards.Number][]int64{}
	asked := map[shards.ID]shards.Number{}
	if t.in.tx == nil {
		if err := t.cached(ctx, ids, found); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		p, err := locate(t.r, t.t, id)
		if err != nil {
			return nil, err
		}
		if _, err := t.in.on(p.Shard); err != nil {
			return nil, fmt.Errorf("object %d: %w", id, err)
		}
		if _, known := found[id]; known {
			continue
		}
		if _, twice := asked[id]; !twice {
			asked[id] = p.Shard.Number()
			locals[p.Shard.Number()] = append(locals[p.Shard.Number()], p.Local)
		}
	}
	done, err := t.read(ctx, locals, found)
	unread := &many.UnreadError{}
	var all []Object[T]
	for _, id := range ids {
		if o, ok := found[id]; ok {
			all = append(all, o)
		} else if n, ok := asked[id]; ok && !done.Has(n) {
			unread.IDs = append(unread.IDs, id)
			delete(asked, id)
		}
	}
	if errors.As(err, &unread.Partial) {
		return all, unread
	}
	return all, err
}

// read adds the rows that the shards have to found. It returns the shards that have answered.
func (t *Type[T]) read(ctx context.Context, locals map[shards.Number][]int64, found map[shards.ID]Object[T]) (shards.Set, error) {
	if len(locals) == 0 {
		return shards.Set{}, nil
	}
	numbers, most := make([]shards.Number, 0, len(locals)), 0
	for n, some := range locals {
		numbers, most = append(numbers, n), max(most, len(some))
	}
	// Postgres plans a statement with an array each time, because the length of the next array is unknown.
	query, own := t.many, func(n shards.Number) []any { return []any{locals[n]} }
	if most <= few {
		query, own = t.few, func(n shards.Number) []any {
			args := make([]any, few)
			for i := range args {
				args[i] = locals[n][min(i, len(locals[n])-1)]
			}
			return args
		}
	}
	scan := func(from pgx.CollectableRow) (r row, err error) { return r, from.Scan(&r.Local, &r.Data, &r.TS) }
	if t.in.tx != nil {
		n := t.in.shard.Number()
		rows, err := t.in.tx.Query(ctx, query, own(n)...)
		if err != nil {
			return shards.Set{}, err
		}
		all, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return shards.Set{}, err
		}
		return shards.SetOf(n), t.add(found, n, all, map[shards.ID][]byte{})
	}
	began := time.Now()
	groups, err := many.CollectByShard(ctx, t.r, shards.SetOf(numbers...), many.Query[row]{
		SQL:  query,
		Own:  own,
		Scan: scan,
	})
	numbers = numbers[:0]
	fresh := map[shards.ID][]byte{}
	for _, group := range groups {
		numbers = append(numbers, group.Shard.Number())
		if bad := t.add(found, group.Shard.Number(), group.Rows, fresh); bad != nil {
			return shards.Set{}, bad
		}
	}
	t.remember(ctx, fresh, began)
	return shards.SetOf(numbers...), err
}

// add adds rows of a shard to found, and what a cache keeps of them to fresh.
func (t *Type[T]) add(found map[shards.ID]Object[T], n shards.Number, rows []row, fresh map[shards.ID][]byte) error {
	for _, r := range rows {
		id, err := Layout.Compose(shards.Parts{Shard: n, Type: t.t.Number, Sequence: r.Local})
		if err != nil {
			return err
		}
		fields, err := t.decode(r.Data)
		if err != nil {
			return err
		}
		found[id] = Object[T]{id, fields, r.TS}
		fresh[id] = entry(r)
	}
	return nil
}
