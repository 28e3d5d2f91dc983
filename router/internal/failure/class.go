package failure

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// SQLState returns the SQLSTATE of an error that the server sent, else "".
func SQLState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// Fatal reports whether a server's error ends the connection.
func Fatal(err *pgconn.PgError) bool {
	severity := severityOf(err)
	return severity == "FATAL" || severity == "PANIC"
}

// EndsConn reports whether err is an error of the server that ends the connection.
func EndsConn(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && Fatal(pgErr)
}

func severityOf(err *pgconn.PgError) string {
	if err.SeverityUnlocalized != "" {
		return err.SeverityUnlocalized
	}
	return err.Severity
}

// EndedIdle reports whether a server ended a session because it was idle, in a transaction or not. The server had not read
// the next statement then, so that statement has not run.
func EndedIdle(err error) bool {
	code := SQLState(err)
	return (code == "25P03" || code == "57P05") && EndsConn(err) // a function may raise them, too
}

// Lost reports whether an error means that a connection ended after a statement may have been sent on it. The server's own
// FATAL is such an error: it may come after the statement took effect, or before the statement was sent.
func Lost(err error) bool {
	var pgErr *pgconn.PgError
	var network *net.OpError
	switch {
	case err == nil, EndedIdle(err), NoConn(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, new(UnsentError)):
		return false
	case errors.Is(err, pgconn.ErrConnClosed): // see SafeToRetry
		return true
	case errors.As(err, &pgErr):
		return Fatal(pgErr)
	case pgconn.SafeToRetry(err):
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// RefusesLogin reports whether a server refuses this user, or does not have the database.
func RefusesLogin(err error) bool {
	code := SQLState(err)
	return strings.HasPrefix(code, "28") || code == "3D000" || code == "42501"
}

// NoConn reports whether a call was not sent because there was no connection to its host.
func NoConn(err error) bool {
	var host *shards.HostError
	var connecting *pgconn.ConnectError
	return errors.Is(err, ErrHostDown) || errors.As(err, &host) && errors.As(host, &connecting) && !RefusesLogin(err) && !errors.Is(err, shards.ErrNoCredentials)
}

// Unsent reports whether pgx says that it has sent nothing.
func Unsent(err error) bool { return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) }

// Conflict reports whether the server ended a transaction because of concurrent transactions: with a serialization failure
// (40001) or a deadlock (40P01).
func Conflict(err error) bool {
	code := SQLState(err)
	return (code == "40001" || code == "40P01") && !errors.Is(err, ErrOutcomeUnknown)
}

// SafeToRetry reports whether nothing has taken effect and a retry may succeed. Package router documents it.
//
// It is stricter than [pgconn.SafeToRetry], which returns true for [pgconn.ErrConnClosed]: pgx also returns that error for
// a connection that was lost after the statement was sent.
func SafeToRetry(err error) bool {
	for _, no := range []error{ErrOutcomeUnknown, ErrLost, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, no) {
			return false
		}
	}
	if NoConn(err) { // this includes a connection that was closed during the connect
		return true
	}
	return !errors.Is(err, pgconn.ErrConnClosed) && (Conflict(err) || EndedIdle(err) || pgconn.SafeToRetry(err))
}

// MayHaveRun reports whether a statement that failed may have taken effect: the server did not say that it failed.
func MayHaveRun(err error) bool {
	var noHost *shards.HostError
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, ErrLost):
		return true
	case errors.As(err, &noHost), errors.As(err, new(UnsentError)):
		return false // it was never sent, so the server's code does not matter
	case errors.As(err, &pgErr):
		return pgErr.Code[:2] == "57" || pgErr.Code[:2] == "08" // it was going down, or the connection was
	}
	return true
}

// NotCommitted reports whether an error of a COMMIT means that nothing was committed. An ERROR of the server means that,
// because the server turns an error after the point of no return into a PANIC. A FATAL does not: it also ends a session
// that has committed and waits for its standby.
func NotCommitted(err error) bool {
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
	return EndedIdle(err) || severityOf(pgErr) == "ERROR"
}
