package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// requestError is an error that the client can do something about.
type requestError struct {
	status int
	text   string
}

// Error returns what the client is told.
func (e *requestError) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &requestError{status, fmt.Sprintf(format, args...)}
}

// failure returns the answer to a request that failed. What the client needs to know is whether anything was done, and
// whether to come again; which host it was, and what Postgres said, is for the log.
func failure(err error) answer {
	var (
		refused *requestError
		tooLong *http.MaxBytesError
		pgErr   *pgconn.PgError
	)
	switch {
	case errors.As(err, &refused):
		return problem(refused.status, refused.text)
	case errors.As(err, &tooLong):
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("a request has %d bytes at most", tooLong.Limit))
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, shards.ErrNoShard), errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrType):
		return problem(http.StatusNotFound, "there is no such thing")
	case errors.Is(err, router.ErrFull):
		return problem(http.StatusInsufficientStorage, "there is no room for new users")
	case errors.Is(err, entities.ErrNotIndexed):
		return problem(http.StatusGatewayTimeout, "it was written, and others do not find it yet, so try again")
	case router.SafeToRetry(err), errors.As(err, &pgErr) && pgErr.Code == queryCanceled && !outcomeUnknown(err):
		return problem(http.StatusServiceUnavailable, "not now; nothing was done, so try again")
	case outcomeUnknown(err):
		return problem(http.StatusGatewayTimeout, "no answer in time; it may have been done or not, so try again with the same Idempotency-Key")
	case errors.As(err, &pgErr) && pgErr.Code == foreignKeyViolation:
		return problem(http.StatusNotFound, "there is no such thing")
	}
	return problem(http.StatusInternalServerError, "this is our fault")
}

// outcomeUnknown tells whether the connection or the time of a statement, or of a COMMIT, ended while it was under way.
// A request whose time ended before is among them: the error does not say which it was.
func outcomeUnknown(err error) bool {
	for _, lost := range []error{router.ErrLost, router.ErrOutcomeUnknown, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// The SQLSTATEs that say something to a client.
const (
	foreignKeyViolation = "23503"
	queryCanceled       = "57014" // by statement_timeout, or by an operator: what was under way is undone
)

func problem(status int, text string) answer {
	return answer{status, map[string]string{"error": text}}
}
