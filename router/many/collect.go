package many

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// OfShard is the answer of one shard.
type OfShard[T any] struct {
	Shard router.Shard
	Rows  []T // in the shard's order; empty if there are none
}

// Collect queries every shard of a set and returns all rows, shard by shard in rising order. Otherwise it works like
// [CollectByShard].
func Collect[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T]) ([]T, error) {
	groups, err := CollectByShard(ctx, r, set, q)
	var flat []T
	for _, group := range groups {
		flat = append(flat, group.Rows...)
	}
	return flat, err
}

// CollectByShard queries every shard of a set and returns the answers, in rising order of the shards. It holds all
// rows in memory; [Stream] does not.
//
// ctx governs all of it, and no connection is in use when it returns. The error is a [shards.PartialError] unless all
// shards are done, and comes with the rows of those that are. A shard has all of its rows or none. Failed are the
// shards on which the statement failed or whose rows could not be read, NotAttempted those that did not receive it;
// [Each] describes the Causes. An error about the arguments is [shards.ErrNoShard] or a [shards.FieldError]: nothing
// was sent.
func CollectByShard[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T]) ([]OfShard[T], error) {
	all, err := q.shards(r, set)
	if err != nil {
		return nil, err
	}
	answers := make([]*OfShard[T], len(all))
	j := newJob(ctx, r, KindCollect, q.Options)
	defer j.stop()
	j.query(all, func(ctx context.Context, i int) error {
		rows, err := q.rows(ctx, all[i], q.argsOf(all[i]))
		if err != nil {
			return err
		}
		read, err := pgx.CollectRows(rows, q.Scan)
		if err == nil {
			answers[i] = &OfShard[T]{all[i], read}
		}
		return err
	})
	var done []OfShard[T]
	for _, answer := range answers {
		if answer != nil {
			done = append(done, *answer)
		}
	}
	return done, j.result(all)
}
