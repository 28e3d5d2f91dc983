package router

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// Kind says what an [Operation] is.
type Kind int

// The kinds of operations.
const (
	KindRead  Kind = iota // a statement by itself that only reads, as far as its words tell
	KindWrite             // any other statement by itself
	KindTx                // BEGIN, COMMIT, ROLLBACK, and each statement in between
	KindBatch             // a batch, in a transaction or not
	KindCopy              // the COPY of CopyFrom, which has a transaction around it
)

var kindNames = [...]string{"read", "write", "tx", "batch", "copy"}

// String returns read, write, tx, batch or copy.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindRead, KindWrite, KindTx, KindBatch, KindCopy} }

// Operation is what a router knows of a statement, or of a batch, that tracers are told of.
type Operation struct {
	Shard    Shard
	Host     string // on which the shard was when it began, by name
	Schema   string // of the shard there
	Kind     Kind
	Summary  string        // what it does to which tables, such as "SELECT photos", without any value
	Began    time.Time     // when the service asked for it
	Waited   time.Duration // until there was a connection for it; 0 in a transaction, which has one
	Together int           // how many statements were sent with it, itself included; 1 by itself, 0 if it was not sent
	Resent   int           // how many more times it was sent: to another connection, or prepared anew
	Attempt  int           // of how many by [Retry] it is part; 1 for the first, and without Retry
	Held     bool          // it had its transaction's connection already, so that it did not wait for one
}

// Place returns the host on which the shard was when the operation began.
func (o Operation) Place() shards.Host { return *o.Shard.home.host.place.Load() }

// OperationOf returns the operation that a tracer is told of, from the context that the tracer is given. At the end of an
// operation it says more than at the start. It returns false for what is no operation of a service on a shard: what hooks
// of a pool send, and what is sent by way of the Conn of a transaction.
func OperationOf(ctx context.Context) (Operation, bool) {
	op, ok := ctx.Value(operationKey{}).(*operation)
	if !ok {
		return Operation{}, false
	}
	return op.Operation, true
}

// UnsentTracer is a tracer that is also told of operations of which nothing was sent: there was no connection, the
// context ended before there was one, or the arguments were wrong. No start and no end is told of these.
type UnsentTracer interface {
	TraceUnsent(ctx context.Context, err error)
}

type operationKey struct{}

// operation is the context of an operation, so that it costs one allocation, and none where nothing is traced.
type operation struct {
	context.Context
	Operation

	tracers *tracers
	told    bool // tracers have been told of its start
	ended   bool

	// Of a call that shares a line.
	traced context.Context // from the tracers
	conn   *pgx.Conn
}

// Value returns the operation itself for its own key.
func (o *operation) Value(key any) any {
	if _, own := key.(operationKey); own {
		return o
	}
	return o.Context.Value(key)
}

// operation returns the context of an operation on a shard, and the operation; without tracers ctx and nil.
func (h *home) operation(ctx context.Context, kind Kind, summary string) (context.Context, *operation) {
	if !h.host.trace.any {
		return ctx, nil
	}
	op := &operation{
		Context: ctx, tracers: &h.host.trace,
		Operation: Operation{Shard: Shard{h}, Host: h.host.Name, Schema: h.schema, Kind: kind, Summary: summary, Began: time.Now(), Attempt: 1},
	}
	return op, op
}

// sent notes that there is a connection, on which so many are sent together.
func (o *operation) sent(together int) {
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

// start tells tracers that a call that shares a line is sent, unless they have been told.
func (o *operation) start(conn *pgx.Conn, sql string, args []any, together int) {
	o.sent(together)
	o.conn = conn
	if o.told || o.tracers.query == nil {
		return
	}
	o.told = true
	o.traced = o.tracers.query.TraceQueryStart(o, conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
}

// finish tells tracers how a call that shares a line has ended, unless they know. The line's goroutine does so while the
// line works for the call, else the caller.
func (o *operation) finish(tag pgconn.CommandTag, err error) {
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

// fail is finish after an error, if there is one.
func (o *operation) fail(err error) {
	if err != nil {
		o.finish(noTag, err)
	}
}

type attemptKey struct{}

// withAttempt returns a context for what is tried again.
func withAttempt(ctx context.Context, attempt int) context.Context {
	if attempt == 1 {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, attempt)
}

func attemptOf(ctx context.Context) int {
	if attempt, ok := ctx.Value(attemptKey{}).(int); ok {
		return attempt
	}
	return 1
}
