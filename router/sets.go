package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// All returns the set of all shards.
func (r *Router) All() shards.Set { return r.Map().All() }

// OfKeys returns the set of the shards of the keys. ctx governs looking them up. The error names the first key that has
// no shard.
func (r *Router) OfKeys(ctx context.Context, keys ...int64) (shards.Set, error) {
	all, _, err := together(keys, r.ofKey(ctx))
	return setOf(all), err
}

// OfIDs returns the set of the shards that made the IDs. The error names the first ID that no shard of the map can have
// made, and is [shards.ErrNoShard].
func (r *Router) OfIDs(ids ...shards.ID) (shards.Set, error) {
	all, _, err := together(ids, r.ForID)
	return setOf(all), err
}

// EachKey is [Router.Each] for the shards of the keys: fn gets those keys that belong to its shard, in the order and as
// often as they were given. When a key has no shard, its error is returned, and fn is not called.
func (r *Router) EachKey(ctx context.Context, keys []int64, opts Options, fn func(context.Context, Shard, []int64) error) error {
	all, of, err := together(keys, r.ofKey(ctx))
	if err != nil {
		return err
	}
	return each(ctx, FanoutEach, all, opts, func(ctx context.Context, i int) error { return fn(ctx, all[i], of[i]) })
}

// EachID is [Router.Each] for the shards that made the IDs: fn gets those IDs that its shard has made, in the order and
// as often as they were given. For an ID that no shard can have made [shards.ErrNoShard] is returned, and fn is not
// called.
func (r *Router) EachID(ctx context.Context, ids []shards.ID, opts Options, fn func(context.Context, Shard, []shards.ID) error) error {
	all, of, err := together(ids, r.ForID)
	if err != nil {
		return err
	}
	return each(ctx, FanoutEach, all, opts, func(ctx context.Context, i int) error { return fn(ctx, all[i], of[i]) })
}

// ofKey is how all of this file finds the shard of a key.
func (r *Router) ofKey(ctx context.Context) func(key int64) (Shard, error) {
	return func(key int64) (Shard, error) { return r.ForKey(ctx, key) }
}

// together returns the shards of keys or IDs, in rising order, and beside each the keys that belong to it.
func together[K any](keys []K, home func(K) (Shard, error)) (all []Shard, of [][]K, err error) {
	byNumber := map[shards.Number][]K{}
	for _, key := range keys {
		s, err := home(key)
		if err != nil {
			return nil, nil, err
		}
		if _, known := byNumber[s.Number()]; !known {
			all = append(all, s)
		}
		byNumber[s.Number()] = append(byNumber[s.Number()], key)
	}
	slices.SortFunc(all, func(a, b Shard) int { return int(a.Number()) - int(b.Number()) })
	for _, s := range all {
		of = append(of, byNumber[s.Number()])
	}
	return all, of, nil
}

func setOf(all []Shard) shards.Set {
	numbers := make([]shards.Number, len(all))
	for i, s := range all {
		numbers[i] = s.Number()
	}
	return shards.SetOf(numbers...)
}

// handles returns the shards of a set, in rising order.
func (r *Router) handles(set shards.Set) ([]Shard, error) {
	all := make([]Shard, 0, set.Len())
	for n := range set.All() {
		s, err := r.ForShard(n)
		if err != nil {
			return nil, fmt.Errorf("the set %s: %w", set, err)
		}
		all = append(all, s)
	}
	return all, nil
}
