package tracers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// Operation is an operation and its context in one, so that a traced operation costs one allocation, and an untraced one
// none. A nil Operation is not traced.
type Operation struct {
	context.Context
	operation.Info

	tracers *Tracers
	started bool // its start was traced
	ended   bool

	// For a call that shares a connection.
	traced context.Context // returned by the tracers
	conn   *pgx.Conn
}

// Operation returns the Info of the operation.
func (o *Operation) Operation() operation.Info { return o.Info }

// Value returns the operation itself for [operation.Key].
func (o *Operation) Value(key any) any {
	if _, own := key.(operation.Key); own {
		return o
	}
	return o.Context.Value(key)
}

// Begin returns an operation and its context. Without tracers it returns ctx and nil.
func (t *Tracers) Begin(ctx context.Context, info operation.Info) (context.Context, *Operation) {
	if !t.Any {
		return ctx, nil
	}
	info.Began, info.Attempt = time.Now(), 1
	op := &Operation{Context: ctx, tracers: t, Info: info}
	return op, op
}

// Started reports whether the start was traced.
func (o *Operation) Started() bool { return o.started }

// Sent records that the operation got a connection, and how many operations are sent together on it.
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

// Start traces the start of a call that shares a connection, unless it was traced before.
func (o *Operation) Start(conn *pgx.Conn, sql string, args []any, together int) {
	o.Sent(together)
	o.conn = conn
	if o.started || o.tracers.query == nil {
		return
	}
	o.started = true
	o.traced = o.tracers.query.TraceQueryStart(o, conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
}

// Finish traces the end of a call that shares a connection, unless it was traced before. The connection's goroutine calls it
// while it works on the call; before and after that, the caller does.
func (o *Operation) Finish(tag pgconn.CommandTag, err error) {
	if o == nil || o.ended {
		return
	}
	switch {
	case o.traced != nil:
		o.tracers.query.TraceQueryEnd(o.traced, o.conn, pgx.TraceQueryEndData{CommandTag: tag, Err: err})
	case !o.started && err != nil:
		for _, tracer := range o.tracers.unsent {
			tracer.TraceUnsent(o, err)
		}
	default:
		return // a Trace traces the end
	}
	o.ended = true
}

// Running reports whether the start of a call that shares a connection was traced, but not its end.
func (o *Operation) Running() bool { return o.traced != nil && !o.ended }

// Fail calls Finish if err is not nil.
func (o *Operation) Fail(err error) {
	if err != nil {
		o.Finish(pgconn.CommandTag{}, err)
	}
}

type attemptKey struct{}

// WithAttempt returns a context for an attempt, counted from 1.
func WithAttempt(ctx context.Context, attempt int) context.Context {
	if attempt == 1 {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}

// AttemptOf returns the number of the attempt that a context is for.
func AttemptOf(ctx context.Context) int {
	if attempt, ok := ctx.Value(attemptKey{}).(int); ok {
		return attempt
	}
	return 1
}
