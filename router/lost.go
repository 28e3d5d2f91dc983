package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// ErrLost says that a connection was lost after a statement was sent and before its answer came: the statement may have
// taken effect or not, and only its data can tell. Of a statement in a transaction that was not committed it is known:
// it has not.
var ErrLost = errors.New("the connection was lost before the answer came: the statement may have run")

// lost tells whether an error is the end of a connection that a statement may have been sent on. The server's own FATAL
// says so too: it may have come after the statement had taken effect, or have been on its way before it was sent.
func lost(err error) bool {
	var pgErr *pgconn.PgError
	var network *net.OpError
	switch {
	case err == nil, endedIdle(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, new(unsentError)):
		return false
	case errors.Is(err, pgconn.ErrConnClosed): // see SafeToRetry
		return true
	case errors.As(err, &pgErr):
		return fatal(pgErr)
	case pgconn.SafeToRetry(err):
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// endedIdle tells whether a server has ended a session that was idle, in a transaction or not. It does so before it reads
// what comes next, which therefore has not run.
func endedIdle(err error) bool {
	code := sqlState(err)
	return code == "25P03" || code == "57P05"
}

// fatal tells whether a server's error is the end of the connection.
func fatal(err *pgconn.PgError) bool {
	severity := err.SeverityUnlocalized
	if severity == "" {
		severity = err.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// sayLost adds ErrLost to an error that means that.
func sayLost(err error) error {
	if !lost(err) || errors.Is(err, ErrLost) || errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// neverSent tells whether an error says that a call was not sent, since there was no connection to its host.
func neverSent(err error) bool {
	var host *shards.HostError
	var connecting *pgconn.ConnectError
	return errors.Is(err, ErrHostDown) || errors.As(err, &host) && errors.As(host, &connecting) && !refusesLogin(err)
}

// unsentError says that a connection was lost before the statement was sent: while it was prepared, or earlier.
type unsentError struct{ cause error }

func (e unsentError) Error() string {
	return fmt.Sprintf("the connection was lost before the statement was sent: %v", e.cause)
}

// SafeToRetry is what [pgconn.SafeToRetry] looks for.
func (e unsentError) SafeToRetry() bool { return true }

// Unwrap returns what the server said, if it said something. What else pgx says of a lost connection may mean the contrary.
func (e unsentError) Unwrap() error {
	var pgErr *pgconn.PgError
	if errors.As(e.cause, &pgErr) {
		return pgErr
	}
	return nil
}

// sayUnsent adds to the error of what comes before a statement that the statement was not sent, if the connection is lost.
func sayUnsent(err error) error {
	if !lost(err) {
		return err
	}
	return unsentError{err}
}
