package failure

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Package router exports and documents these sentinels.
var (
	ErrLost           = errors.New("the connection was lost before the answer came: the statement may have run")
	ErrOutcomeUnknown = errors.New("COMMIT was sent and not answered, so the transaction may have taken effect or not")
	ErrHostDown       = errors.New("the host is down")
	ErrMoved          = errors.New("the shard is not on the host that the map names")
)

// UnsentError means that a connection was lost before the statement was sent: while it was prepared, or earlier.
type UnsentError struct{ Cause error }

// Error returns a text with the cause.
func (e UnsentError) Error() string {
	return fmt.Sprintf("the connection was lost before the statement was sent: %v", e.Cause)
}

// SafeToRetry returns true. [pgconn.SafeToRetry] calls it.
func (e UnsentError) SafeToRetry() bool { return true }

// Unwrap returns the server's error if there is one, else nil: other errors that pgx returns for a lost connection may mean
// that the statement was sent.
func (e UnsentError) Unwrap() error {
	var pgErr *pgconn.PgError
	if errors.As(e.Cause, &pgErr) {
		return pgErr
	}
	return nil
}

// RolledBackError means that a connection was lost at a ROLLBACK, or before it: the server has rolled the transaction back.
type RolledBackError struct{ Cause error }

// Error returns a text with the cause.
func (e RolledBackError) Error() string {
	return fmt.Sprintf("the connection was lost, and with it the transaction was rolled back: %v", e.Cause)
}

// SafeToRetry returns true. [pgconn.SafeToRetry] calls it.
func (e RolledBackError) SafeToRetry() bool { return true }

// WithLost adds [ErrLost] to an error if [Lost] reports true for it.
func WithLost(err error) error {
	if !Lost(err) || errors.Is(err, ErrLost) || errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// Moved adds [ErrMoved] to an error unless it has it.
func Moved(err error) error {
	if errors.Is(err, ErrMoved) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMoved, err)
}

// BeforeSend turns the error of a step before the send into an [UnsentError] if the connection is lost.
func BeforeSend(err error) error {
	if !Lost(err) {
		return err
	}
	return UnsentError{err}
}
