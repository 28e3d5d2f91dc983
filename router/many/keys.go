package many

import (
	"context"
	"slices"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Key is a key that the map's strategy turns into a shard: a number, a text, or either.
type Key interface {
	int64 | string | shards.Key
}

// OfKeys returns the set of the shards of the keys. ctx governs looking them up. The error names the first key that has
// no shard.
func OfKeys[K Key](ctx context.Context, r *router.Router, keys ...K) (shards.Set, error) {
	all, _, err := byShard(keys, shardOf[K](ctx, r))
	return setOf(all), err
}

// OfIDs returns the set of the shards that made the IDs. The error names the first ID that no shard of the map can have
// made, and is [shards.ErrNoShard].
func OfIDs(r *router.Router, ids ...shards.ID) (shards.Set, error) {
	all, _, err := byShard(ids, r.ForID)
	return setOf(all), err
}

// EachKey is [Each] for the shards of keys: fn gets the keys of its shard, in their order, repeated ones included. If
// a key has no shard, its error is returned, and fn is not called.
func EachKey[K Key](ctx context.Context, r *router.Router, keys []K, opts Options, fn func(context.Context, router.Shard, []K) error) error {
	all, of, err := byShard(keys, shardOf[K](ctx, r))
	if err != nil {
		return err
	}
	return each(ctx, r, KindEach, all, opts, func(ctx context.Context, i int) error { return fn(ctx, all[i], of[i]) })
}

// EachID is [Each] for the shards that made IDs: fn gets the IDs that its shard made, in their order, repeated ones
// included. If no shard can have made an ID, the error is [shards.ErrNoShard], and fn is not called.
func EachID(ctx context.Context, r *router.Router, ids []shards.ID, opts Options, fn func(context.Context, router.Shard, []shards.ID) error) error {
	all, of, err := byShard(ids, r.ForID)
	if err != nil {
		return err
	}
	return each(ctx, r, KindEach, all, opts, func(ctx context.Context, i int) error { return fn(ctx, all[i], of[i]) })
}

// shardOf returns a function that finds the shard of a key.
func shardOf[K Key](ctx context.Context, r *router.Router) func(K) (router.Shard, error) {
	return func(key K) (router.Shard, error) {
		switch key := any(key).(type) {
		case int64:
			return r.ForKey(ctx, shards.NumberKey(key))
		case string:
			return r.ForKey(ctx, shards.TextKey(key))
		case shards.Key:
			return r.ForKey(ctx, key)
		}
		panic("bug: a key of an unknown type")
	}
}

// byShard returns the shards of keys or IDs, in rising order, and beside each the keys that belong to it.
func byShard[K any](keys []K, shard func(K) (router.Shard, error)) (all []router.Shard, of [][]K, err error) {
	byNumber := map[shards.Number][]K{}
	for _, key := range keys {
		s, err := shard(key)
		if err != nil {
			return nil, nil, err
		}
		if _, known := byNumber[s.Number()]; !known {
			all = append(all, s)
		}
		byNumber[s.Number()] = append(byNumber[s.Number()], key)
	}
	slices.SortFunc(all, func(a, b router.Shard) int { return int(a.Number()) - int(b.Number()) })
	for _, s := range all {
		of = append(of, byNumber[s.Number()])
	}
	return all, of, nil
}

func setOf(all []router.Shard) shards.Set {
	numbers := make([]shards.Number, len(all))
	for i, s := range all {
		numbers[i] = s.Number()
	}
	return shards.SetOf(numbers...)
}
