package many

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"
)

// OfShard is what one shard has answered.
type OfShard[T any] struct {
	Shard router.Shard
	Rows  []T // in the order of the shard; empty if it has none
}

// Collect asks every shard of a set and returns the rows of all: those of one shard together, in its order, and the
// shards in rising order. Otherwise it is [CollectByShard].
func Collect[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T]) ([]T, error) {
	groups, err := CollectByShard(ctx, r, set, q)
	var flat []T
	for _, group := range groups {
		flat = append(flat, group.Rows...)
	}
	return flat, err
}

// CollectByShard asks every shard of a set and returns what each that is done has answered, in rising order of the
// shards. All rows are in memory in the end; see [Stream] for more than that.
//
// ctx governs all of it, and no connection is in use when it returns. The error is a [shards.PartialError] unless all
// shards are done, and comes with the rows of those that are. Of a shard there are all rows or none. Failed are the
// shards on which the statement failed or whose rows could not be read, NotAttempted those to which it was not sent;
// [Each] tells of the Causes. An error about the arguments is [shards.ErrNoShard] or a [shards.FieldError]: nothing was
// sent.
func CollectByShard[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T]) ([]OfShard[T], error) {
	all, err := q.shards(r, set)
	if err != nil {
		return nil, err
	}
	answers := make([]*OfShard[T], len(all))
	j := newJob(ctx, r, KindCollect, q.Options)
	defer j.stop()
	j.ask(all, func(ctx context.Context, i int, hint *together.Hint) error {
		rows, err := q.rows(ctx, all[i], q.argsOf(all[i]), hint)
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
