package router

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/router/internal/failure"

	"github.com/kiloshard/kiloshard/shards"
)

// ErrOtherTx says that a transaction is none that a [Shard] of the router has begun.
var ErrOtherTx = errors.New("expected a transaction that Begin, BeginTx or Tx of a shard of this router has given")

var errClosed = errors.New("the router is closed")

func noShard(n shards.Number, m *shards.Map) error {
	return fmt.Errorf("shard %d, the map has shards 0 to %d: %w", n, m.Len()-1, shards.ErrNoShard)
}

// ErrLost says that a connection was lost after a statement was sent and before its answer came: the statement may have
// taken effect or not, and only its data can tell. Of a statement in a transaction that was not committed it is known:
// it has not.
var ErrLost = failure.ErrLost

// ErrOutcomeUnknown says that the answer to a COMMIT did not come: the connection broke, or ctx ended, once it was sent.
// The transaction may have taken effect or not, and only its data can tell.
var ErrOutcomeUnknown = failure.ErrOutcomeUnknown

// SafeToRetry tells whether an error of a transaction, or of a single statement, says that nothing of it has taken
// effect and that the same may go through if it is run again: it lost against others (SQLSTATE 40001, a serialization
// failure, or 40P01, a deadlock), it met a server that had become a standby, its session had been idle for too
// long (25P03, 57P05), or it was never sent: its host was down
// ([ErrHostDown]), its shard was not there ([ErrMoved]), or there was no connection to it for a reason that may pass. It is false for everything that says nothing about this, for
// the end of a context, for [ErrLost] and for [ErrOutcomeUnknown].
//
// It is stricter than [pgconn.SafeToRetry], which holds for [pgconn.ErrConnClosed]: pgx reports that also for a
// connection that was lost after the statement was sent. What ran before is the caller's to know: the error of one
// statement says nothing of a COMMIT that was sent as SQL.
func SafeToRetry(err error) bool { return errors.Is(err, ErrMoved) || failure.SafeToRetry(err) }

// ErrMoved says that a shard is not on the host where the router's map has it, and that no newer map was available within 3
// seconds. Nothing of the statement has run. In a transaction it may also come after statements that did not touch the
// shard, such as SET LOCAL: a later one then finds that the shard has moved, and the transaction must begin again, as
// [Retry] does. A COPY has read nothing of its source then. Its [shards.ShardError] names the shard and the host.
var ErrMoved = failure.ErrMoved
