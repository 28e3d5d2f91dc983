package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

var (
	errBatchBegin = errors.New("a batch with Batch.BeginTx cannot be sent to a shard: use BeginTx of the shard, and SendBatch of its transaction")
	errNoAnswer   = errors.New("the server gave no answer to a statement")
	errPooled     = errors.New("there is a pooler before the server")
	errProcedure  = errors.New("CALL and DO could commit and go on outside the shard: use Exec or a transaction")
	errClosed     = errors.New("the router is closed")
	errListen     = errors.New("LISTEN needs a connection of its own, not one that is shared")
	errTxLeft     = errors.New("the SQL left its transaction open, which has been rolled back: use Begin")
	errTxEnded    = errors.New("the transaction was ended by a statement of its own; use Commit or Rollback")
)

// failed says which shard an error is about. The sentinels of pgx stay as they are, for callers who compare them.
func (h *home) failed(err error) error {
	if err == nil || errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if !h.safe && failure.SQLState(err) == "25006" {
		h.host.watch.Refused()
	}
	return &shards.ShardError{Shard: h.number, Schema: h.schema, Host: h.host.Name, Err: failure.WithLost(sayGrant(sayMoved(err)))}
}

// sayGrant says what to do about a right that the role does not have.
func sayGrant(err error) error {
	if failure.SQLState(err) != "42501" {
		return err
	}
	return fmt.Errorf("%w; kiloshard grant gives a role its rights on all shards", err)
}

func noShard(n shards.Number, m *shards.Map) error {
	return fmt.Errorf("shard %d, the map has shards 0 to %d: %w", n, m.Len()-1, shards.ErrNoShard)
}

// gone tells whether the server does not know one of the router's prepared statements, which then has not run.
func gone(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "26000" && strings.Contains(pgErr.Message, namePrefix)
}

// staleStates are the errors that can come from a prepared statement that was described before a table changed: its result
// has another shape (0A000), a type does not fit any more (42804, 42846, 42883, 42P18), an argument that is now a text was
// announced as a number (22P02), the type of an argument is gone (42704, XX000).
var staleStates = []string{"0A000", "22P02", "42704", "42804", "42846", "42883", "42P18", "XX000"}

// maybeStale tells whether an error can come from a prepared statement that is out of date.
func maybeStale(err error) bool {
	return slices.Contains(staleStates, failure.SQLState(err))
}
