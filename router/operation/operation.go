// Package operation describes the operations that a router passes to its tracers. For each statement, batch and CopyFrom of
// the service it has the shard, the host, the wait for a connection, and how the operation was sent.
//
// A tracer is a [pgx.QueryTracer] in router.Config.Tracers; it may implement pgx's other tracer interfaces too. It gets the
// operation from the context of its calls:
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

// Kind is the kind of an operation.
type Kind int

// The kinds of operations.
const (
	Read  Kind = iota // a statement outside a transaction that only reads, judging by its words
	Write             // any other statement outside a transaction
	Tx                // BEGIN, COMMIT, ROLLBACK, and each statement between them
	Batch             // a batch, in a transaction or not
	Copy              // the COPY of CopyFrom, which runs in a transaction
)

var kindNames = [...]string{"read", "write", "tx", "batch", "copy"}

// String returns read, write, tx, batch or copy.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Read, Write, Tx, Batch, Copy} }

// Info describes an operation.
type Info struct {
	Shard    shards.Number
	Host     string       // name of the shard's host when the operation began
	Place    *shards.Host // the same; must not be changed
	Schema   string       // of the shard there
	Kind     Kind
	Summary  string        // its commands and tables, such as "SELECT photos", without values
	Began    time.Time     // when the service made the call
	Waited   time.Duration // how long it waited for a connection; 0 in a transaction, which has one
	Together int           // number of statements sent together, including this one; 0 if it was not sent
	Resent   int           // number of times it was sent again: on another connection, or prepared again
	Attempt  int           // number of the attempt of router.Retry; 1 for the first, and without Retry
	Held     bool          // it used the connection of its transaction, so it did not wait for one
}

// Key is the context key of an operation. Use [Of].
type Key struct{}

// Of returns the operation from the context of a tracer's call. Some fields are set only at the end of the operation. Of
// returns false if there is no operation of a service on a shard: for statements of a pool's hooks, and for statements on
// the Conn of a transaction.
func Of(ctx context.Context) (Info, bool) {
	op, ok := ctx.Value(Key{}).(interface{ Operation() Info })
	if !ok {
		return Info{}, false
	}
	return op.Operation(), true
}

// UnsentTracer is a tracer that also traces operations that were not sent: there was no connection, the context ended first,
// or the arguments were wrong. Their start and end are not traced.
type UnsentTracer interface {
	TraceUnsent(ctx context.Context, err error)
}
