package many

import (
	"context"
	"iter"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Stream queries every shard of a set and yields the rows as they come: in order within a shard, mixed between shards. It
// holds one row in memory for each shard that it is reading.
//
// Each range over the rows sends the statements. While the loop runs, it uses up to q.PerHost connections to each host. A
// body that uses the router needs a larger pool than that: otherwise it may wait for a connection that the loop holds.
// Leaving the loop cancels the statements under way, and returns all connections before the statement after the loop.
//
// ctx governs all of it. An error comes last. It is one of those of [Each], or a [shards.FieldError] about q. Stream may
// have yielded some rows of a shard that failed. q.Timeout limits one shard with all its rows, including the time that
// the body of the loop spends on them.
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
		var cause any // of a panic in q.Scan or q.Own
		go func() {
			defer close(rows)
			defer func() { cause = recover() }()
			err = each(ctx, r, KindStream, all, q.orPerHost(streamPerHost), func(ctx context.Context, i int) error {
				return q.send(ctx, all[i], rows)
			})
		}()
		defer func() {
			stop()
			for range rows { // until all have ended
			}
			if cause != nil {
				panic(cause)
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
	rows, err := q.rows(ctx, s, q.argsOf(s))
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
