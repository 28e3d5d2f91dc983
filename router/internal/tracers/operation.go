package tracers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// Operation is the context of an operation, so that it costs one allocation, and none where nothing is traced. A nil
// Operation is one that nobody is told of.
type Operation struct {
	context.Context
	operation.Info

	tracers *Tracers
	told    bool // tracers have been told of its start
	ended   bool

	// Of a call that shares a connection.
	traced context.Context // from the tracers
	conn   *pgx.Conn
}

// Operation returns what is known of it.
func (o *Operation) Operation() operation.Info { return o.Info }

// Value returns the operation itself for its own key.
func (o *Operation) Value(key any) any {
	if _, own := key.(operation.Key); own {
		return o
	}
	return o.Context.Value(key)
}

// Begin returns the context of an operation, and the operation; without tracers ctx and nil.
func (t *Tracers) Begin(ctx context.Context, info operation.Info) (context.Context, *Operation) {
	if !t.Any {
		return ctx, nil
	}
	info.Began, info.Attempt = time.Now(), 1
	op := &Operation{Context: ctx, tracers: t, Info: info}
	return op, op
}

// Told reports whether tracers have been told of its start.
func (o *Operation) Told() bool { return o.told }

// Sent notes that there is a connection, on which so many are sent together.
func (o *Operation) Sent(together int) {
	if o == nil {
		return
	}
	if o.Together > 0 {
		o.Resent++
	} else {
		o.Waited = time.Since(o.Began)
	}
	o.Together = together
}

// Start tells tracers that a call that shares a connection is sent, unless they have been told.
func (o *Operation) Start(conn *pgx.Conn, sql string, args []any, together int) {
	o.Sent(together)
	o.conn = conn
	if o.told || o.tracers.query == nil {
		return
	}
	o.told = true
	o.traced = o.tracers.query.TraceQueryStart(o, conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
}

// Finish tells tracers how a call that shares a connection has ended, unless they know. The connection's goroutine does so
// while it works for the call, else the caller.
func (o *Operation) Finish(tag pgconn.CommandTag, err error) {
	if o == nil || o.ended {
		return
	}
	switch {
	case o.traced != nil:
		o.tracers.query.TraceQueryEnd(o.traced, o.conn, pgx.TraceQueryEndData{CommandTag: tag, Err: err})
	case !o.told && err != nil:
		for _, tracer := range o.tracers.unsent {
			tracer.TraceUnsent(o, err)
		}
	default:
		return // a trace tells of the end
	}
	o.ended = true
}

// GoesOn reports whether tracers were told that a call that shares a connection is sent, and not how it ended.
func (o *Operation) GoesOn() bool { return o.traced != nil && !o.ended }

// Fail is Finish after an error, if there is one.
func (o *Operation) Fail(err error) {
	if err != nil {
		o.Finish(pgconn.CommandTag{}, err)
	}
}

type attemptKey struct{}

// WithAttempt returns a context for what is tried again.
func WithAttempt(ctx context.Context, attempt int) context.Context {
	if attempt == 1 {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}

// AttemptOf returns which attempt a context is for.
func AttemptOf(ctx context.Context) int {
	if attempt, ok := ctx.Value(attemptKey{}).(int); ok {
		return attempt
	}
	return 1
}
