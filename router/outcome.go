package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrOutcomeUnknown says that the answer to a COMMIT did not come: the connection broke, or ctx ended, once it was sent.
// The transaction may have taken effect or not, and only its data can tell.
var ErrOutcomeUnknown = errors.New("COMMIT was sent and not answered, so the transaction may have taken effect or not")

// SafeToRetry tells whether an error of a transaction, or of a single statement, says that nothing of it has taken
// effect and that the same may go through if it is run again: it lost against others (SQLSTATE 40001, a serialization
// failure, or 40P01, a deadlock), it met a server that had become a standby, its session had been idle for too
// long (25P03, 57P05), or it was never sent: its host was down
// ([ErrHostDown]), or there was no connection to it for a reason that may pass. It is false for everything that says nothing about this, for
// the end of a context, for [ErrLost] and for [ErrOutcomeUnknown].
//
// It is stricter than [pgconn.SafeToRetry], which holds for [pgconn.ErrConnClosed]: pgx reports that also for a
// connection that was lost after the statement was sent. What ran before is the caller's to know: the error of one
// statement says nothing of a COMMIT that was sent as SQL.
func SafeToRetry(err error) bool {
	for _, no := range []error{ErrOutcomeUnknown, ErrLost, pgconn.ErrConnClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, no) {
			return false
		}
	}
	return lostToOthers(err) || endedIdle(err) || pgconn.SafeToRetry(err) || neverSent(err)
}

// lostToOthers tells whether the server ended a transaction for what others did at the same time.
func lostToOthers(err error) bool {
	code := sqlState(err)
	return (code == "40001" || code == "40P01") && !errors.Is(err, ErrOutcomeUnknown)
}

// commit sends the COMMIT of a transaction. That of a savepoint decides nothing yet.
func (t *tx) commit(ctx context.Context) error {
	open := !t.session.conn.IsClosed()
	err := t.Tx.Commit(ctx)
	if err == nil || t.savepoint || !open || refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// refused tells whether an error of a COMMIT says that nothing was committed. The server's errors do, since it turns an
// error past the point of no return into a PANIC; a FATAL does not: it also ends a session that has committed and waits
// for its standby.
func refused(err error) bool {
	switch {
	case errors.Is(err, pgconn.ErrConnClosed): // see SafeToRetry
		return false
	case errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, pgx.ErrTxClosed), pgconn.SafeToRetry(err):
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	return endedIdle(err) || pgErr.SeverityUnlocalized == "ERROR" || pgErr.SeverityUnlocalized == "" && pgErr.Severity == "ERROR"
}
