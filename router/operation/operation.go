// Package operation is what a router tells its tracers: of each statement, batch and CopyFrom of the service which shard
// it was for, on which host, how long it waited for a connection, and how it was sent.
//
// A tracer is any of [pgx.QueryTracer] and its kin, in router.Config.Tracers. It finds the operation in the context that
// it is given:
//
//	func (t *tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
//		if op, ok := operation.Of(ctx); ok {
//			t.log.Info("query", "shard", op.Shard, "host", op.Host, "took", time.Since(op.Began), "error", data.Err)
//		}
//	}
package operation

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Kind says what an operation is.
type Kind int

// The kinds of operations.
const (
	Read  Kind = iota // a statement by itself that only reads, as far as its words tell
	Write             // any other statement by itself
	Tx                // BEGIN, COMMIT, ROLLBACK, and each statement in between
	Batch             // a batch, in a transaction or not
	Copy              // the COPY of CopyFrom, which has a transaction around it
)

var kindNames = [...]string{"read", "write", "tx", "batch", "copy"}

// String returns read, write, tx, batch or copy.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Read, Write, Tx, Batch, Copy} }

// Info is what a router knows of an operation.
type Info struct {
	Shard    shards.Number
	Host     string       // on which the shard was when it began, by name
	Place    *shards.Host // the same; must not be changed
	Schema   string       // of the shard there
	Kind     Kind
	Summary  string        // what it does to which tables, such as "SELECT photos", without any value
	Began    time.Time     // when the service asked for it
	Waited   time.Duration // until there was a connection for it; 0 in a transaction, which has one
	Together int           // how many statements were sent with it, itself included; 1 by itself, 0 if it was not sent
	Resent   int           // how many more times it was sent: to another connection, or prepared again
	Attempt  int           // of how many by router.Retry it is part; 1 for the first, and without Retry
	Held     bool          // it had its transaction's connection already, so that it did not wait for one
}

// Key is what a router puts an operation under in a context. Use [Of].
type Key struct{}

// Of returns the operation that a tracer traces, from the context that the tracer gets. At the end of an operation
// it says more than at the start. It returns false for what is no operation of a service on a shard: what hooks of a pool
// send, and what is sent with the Conn of a transaction.
func Of(ctx context.Context) (Info, bool) {
	op, ok := ctx.Value(Key{}).(interface{ Operation() Info })
	if !ok {
		return Info{}, false
	}
	return op.Operation(), true
}

// UnsentTracer is a tracer that also traces operations of which nothing was sent: there was no connection, the context
// ended before there was one, or the arguments were wrong. Their start and end are not traced.
type UnsentTracer interface {
	TraceUnsent(ctx context.Context, err error)
}
