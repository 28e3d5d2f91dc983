package many

import (
	"context"
	"iter"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Stream asks every shard of a set and yields the rows as they come: those of a shard in its order, those of several
// mixed. However many there are, it has one row in memory of each shard that it is at.
//
// Nothing is sent before the rows are ranged over, and all is sent anew for each range. While the body of the loop runs,
// up to q.PerHost connections to each host are in use. A body that uses the router needs a pool larger than that: else
// it may wait for a connection that only its own going on would free. When the loop is left, statements under way are
// cancelled, and all connections are given back before the next statement after the loop.
//
// ctx governs all of it. An error is yielded last. It is one of those of [Each], or a [shards.FieldError] about
// q. Some rows of a shard that failed may have been yielded. q.Timeout is for one shard with all its rows, and with what
// the body of the loop does about them.
func Stream[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		all, err := q.shards(r, set)
		if err != nil {
			yield(none, err)
			return
		}
		ctx, stop := context.WithCancel(ctx)
		rows := make(chan T)
		go func() {
			defer close(rows)
			err = each(ctx, r, KindStream, all, q.orPerHost(streamPerHost), func(ctx context.Context, i int) error {
				return q.send(ctx, all[i], rows)
			})
		}()
		defer func() {
			stop()
			for range rows { // until nothing is under way any more
			}
		}()
		for row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		if err != nil {
			yield(none, err)
		}
	}
}

// send sends the rows of a shard to a channel.
func (q Query[T]) send(ctx context.Context, s router.Shard, to chan<- T) error {
	rows, err := q.rows(ctx, s, q.argsOf(s), nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := q.Scan(rows)
		if err != nil {
			return err
		}
		select {
		case to <- row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return rows.Err()
}
