package many

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"
)

// Query is a statement for many shards, and how to read its rows.
type Query[T any] struct {
	SQL  string // one statement that returns rows, with unqualified table names
	Args []any  // the same for all shards; as for [router.Shard.Query]
	// Own returns the arguments that differ by shard. They come before Args: $1 and so on. Defaults to none. GetMany
	// does not call it: there $1 holds the IDs.
	Own  func(shards.Number) []any
	Scan pgx.RowToFunc[T] // such as pgx.RowToStructByName[Photo]; several goroutines may call it at the same time

	// Reads, if set, reads each shard by a [router.Reader]. A position in it counts for the shards of one host; those
	// of other hosts are then read on their primaries. Defaults to nil: all shards are read on their primaries.
	Reads *router.Reads

	Options
}

func (q Query[T]) check() error {
	if q.Scan == nil {
		return &shards.FieldError{Field: "Scan", Found: "nil", Expected: "how to read a row, such as pgx.RowToStructByName"}
	}
	return nil
}

// argsOf returns the arguments for one shard.
func (q Query[T]) argsOf(s router.Shard) []any {
	if q.Own == nil {
		return q.Args
	}
	return slices.Concat(q.Own(s.Number()), q.Args) // Own may return a part of a longer slice
}

// shards returns the shards of the set if the query can be sent to them.
func (q Query[T]) shards(r *router.Router, set shards.Set) ([]router.Shard, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return handles(r, set)
}

// rows sends the statement to a shard, together with others if ctx has a hint and no replica may answer.
func (q Query[T]) rows(ctx context.Context, s router.Shard, args []any) (pgx.Rows, error) {
	if q.Reads != nil {
		return s.ReadOnly(*q.Reads).Query(together.With(ctx, nil), q.SQL, args...)
	}
	return s.Query(ctx, q.SQL, args...)
}

// handles returns the shards of a set, in rising order.
func handles(r *router.Router, set shards.Set) ([]router.Shard, error) {
	all := make([]router.Shard, 0, set.Len())
	for n := range set.All() {
		s, err := r.ForShard(n)
		if err != nil {
			return nil, fmt.Errorf("the set %s: %w", set, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// query calls fn with the index of every shard; fn sends a statement and reads its rows. query runs up to PerHost shards
// of a host at a time, by default all of them. It takes the results in the order of the shards. So if a host is
// unreachable, its first shard is the one that fails.
func (j *job) query(all []router.Shard, fn func(ctx context.Context, i int) error) {
	j.onHosts(all, func(l *hostJob, on []int) {
		atOnce := l.opts.orPerHost(len(on)).PerHost
		var started []*statement
		for turn, i := range on {
			if l.ctx.Err() == nil {
				started = append(started, l.begin(on[len(started):min(turn+atOnce, len(on))], fn)...)
			}
			if turn == len(started) {
				return
			}
			l.end(all[i], started[turn])
		}
	})
}

// statement is a statement under way.
type statement struct {
	ctx    context.Context // from limit
	cancel context.CancelFunc
	ended  chan error
}

// begin sends the statement to some shards.
func (l *hostJob) begin(on []int, fn func(ctx context.Context, i int) error) []*statement {
	crowd := &together.Crowd{}
	hints, all := make([]*together.Hint, len(on)), make([]*statement, len(on))
	for k := range on {
		hints[k] = crowd.Join()
	}
	for k, i := range on {
		a := &statement{ended: make(chan error, 1)}
		a.ctx, a.cancel = l.limit()
		go func() {
			defer hints[k].Arrive()
			a.ended <- l.call(func() error { return fn(together.With(a.ctx, hints[k]), i) })
		}()
		all[k] = a
	}
	return all
}

// end waits for the answer of a shard and records it.
func (l *hostJob) end(s router.Shard, a *statement) {
	defer a.cancel()
	err := <-a.ended
	var unsent *shards.HostError
	if errors.As(err, &unsent) && l.ctx.Err() != nil {
		return // it was not sent
	}
	l.ended(a.ctx, s, err)
}
