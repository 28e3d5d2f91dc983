package router

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Query is a statement for many shards, and how to read its rows.
type Query[T any] struct {
	SQL  string           // one statement that returns rows, with the tables' names unqualified
	Args []any            // the same for all shards; as for [Shard.Query]
	Scan pgx.RowToFunc[T] // such as pgx.RowToStructByName[Photo]; may be called by several goroutines at once

	// Reads has each shard be read by a [Reader]. A position in it counts for the shards of one host; those of the others
	// are then read on their primaries. Defaults to nil, which is to read all shards on their primaries.
	Reads *Reads

	Options
}

func (q Query[T]) check() error {
	if q.Scan == nil {
		return &shards.FieldError{Field: "Scan", Found: "nil", Expected: "how to read a row, such as pgx.RowToStructByName"}
	}
	return nil
}

// of returns the shards of the set if the query can be put to them.
func (q Query[T]) of(r *Router, set shards.Set) ([]Shard, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return r.handles(set)
}

// ask sends the statement to every shard and calls read with the index of each that has answered, and its rows, which
// are read's to close. read is called for different hosts at once.
func (j *job) ask(all []Shard, sql string, args func(i int) []any, read func(i int, rows pgx.Rows) error) {
	j.onHosts(all, func(l *lane, on []int) {
		ahead := l.opts.orPerHost(len(on)).PerHost
		var begun []asked
		for turn, i := range on {
			// Everything that may be under way is sent before the first answer is waited for, so that it can share a
			// round trip.
			for len(begun) < min(turn+ahead, len(on)) && l.ctx.Err() == nil {
				next := on[len(begun)]
				ctx, cancel := l.limit()
				begun = append(begun, asked{ctx, cancel, j.start(ctx, all[next], sql, args(next))})
			}
			if turn == len(begun) {
				return
			}
			l.hear(all[i], begun[turn], func(rows pgx.Rows) error { return read(i, rows) })
		}
	})
}

// start begins a statement on a shard, or where its reader finds it.
func (j *job) start(ctx context.Context, s Shard, sql string, args []any) pending {
	if j.reads != nil {
		return s.ReadOnly(*j.reads).start(ctx, sql, args)
	}
	return s.start(ctx, sql, args...)
}

// asked is a statement under way.
type asked struct {
	ctx     context.Context // from limit
	cancel  context.CancelFunc
	pending pending
}

// hear waits for the answer of a shard and reads it.
func (l *lane) hear(s Shard, a asked, read func(pgx.Rows) error) {
	defer a.cancel()
	rows, err := a.pending.wait()
	var unsent *shards.HostError
	if err != nil && errors.As(err, &unsent) && l.ctx.Err() != nil {
		return // its turn never came
	}
	if err == nil {
		err = read(rows)
	}
	l.ended(a.ctx, s, err)
}
