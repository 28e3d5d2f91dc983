package operation

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// The classes of errors that the server did not send, see [Classify].
const (
	ClassCanceled       = "canceled"        // the context was canceled
	ClassTimeout        = "timeout"         // the context's deadline or a network timeout passed
	ClassUnreachable    = "unreachable"     // there was no connection to the host, and nothing was sent
	ClassConnection     = "connection"      // the connection was lost, and the statement may have run
	ClassOutcomeUnknown = "outcome_unknown" // see router.ErrOutcomeUnknown
	ClassOther          = "other"           // for example, pgx cannot encode an argument
)

// Classify returns the class of an error: the SQLSTATE (five characters) of an error that the server sent, otherwise one of
// the classes above, and "" for nil. It does not use the error's text, which may quote an argument.
func Classify(err error) string {
	var (
		unsent *shards.HostError
		lost   *pgconn.ConnectError
		timing interface{ Timeout() bool }
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, failure.ErrOutcomeUnknown):
		return ClassOutcomeUnknown
	case failure.SQLState(err) != "":
		return failure.SQLState(err)
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timing) && timing.Timeout():
		return ClassTimeout
	case errors.As(err, &unsent), errors.As(err, &lost):
		return ClassUnreachable
	case errors.Is(err, failure.ErrLost), errors.Is(err, pgconn.ErrConnClosed), connectionError(err):
		return ClassConnection
	}
	return ClassOther
}

// connectionError reports whether an error is from a read or write on the connection.
func connectionError(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
