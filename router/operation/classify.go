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

// The classes of errors that are not the server's, see [Classify].
const (
	ClassCanceled       = "canceled"        // the context was cancelled
	ClassTimeout        = "timeout"         // the context's time was up, or the network's
	ClassUnreachable    = "unreachable"     // there was no connection to the host, and nothing was sent
	ClassConnection     = "connection"      // the connection was lost, and the statement may have run
	ClassOutcomeUnknown = "outcome_unknown" // see router.ErrOutcomeUnknown
	ClassOther          = "other"           // such as an argument that fits no type of the server's
)

// Classify returns what kind of error it is, in none of the error's own words, which may quote an argument: the SQLSTATE
// of an error that the server sent, five characters, or else one of the classes above. For nil it is empty.
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

// connectionError tells whether an error is one of reading or writing.
func connectionError(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
