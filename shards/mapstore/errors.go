package mapstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoMap says that a store holds no map yet.
var ErrNoMap = errors.New("the store holds no map")

// ErrClosed says that a store is closed.
var ErrClosed = errors.New("the store is closed")

// ErrNoAnswer says that a store did not answer within [Options.Limit], or before the context's deadline.
var ErrNoAnswer = errors.New("no answer in time")

// ErrOutcomeUnknown says that a change was sent to the store and no answer came: it may or may not have been made.
var ErrOutcomeUnknown = errors.New("the store did not answer: it may or may not have changed the map")

// ConflictError says that the map is not at the version that a change expects.
type ConflictError struct {
	Wanted int // the version that was expected
	Found  int // the version that is there, 0 for none
}

// Error names both versions.
func (e *ConflictError) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("the store holds no version of the map yet, not version %d", e.Wanted)
	}
	return fmt.Sprintf("the map is at version %d, not %d: somebody else changed it", e.Found, e.Wanted)
}

// WentBackError says that a store holds an older version than before, or another map under the same version: it was
// restored to an old state, or is another store.
type WentBackError struct {
	Seen  int // the newest version that was seen
	Found int // the version that is there, 0 for none
}

// Error names both versions.
func (e *WentBackError) Error() string {
	found := fmt.Sprintf("version %d", e.Found)
	switch e.Found {
	case 0:
		found = "no version of the map"
	case e.Seen:
		found = fmt.Sprintf("another version %d", e.Found)
	}
	return fmt.Sprintf("the store holds %s after version %d was seen: it was restored to an old state, or is another store", found, e.Seen)
}

// IsRefusal reports whether an error of [Store.Swap] or [Checker.Check] says that the store refuses the change: the same change would be
// refused again. After any other error, such as a conflict, no answer, or a failure to connect, another try may succeed.
func IsRefusal(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && !errors.Is(err, ErrOutcomeUnknown)
}

// refusedError marks an error as a refusal.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// refusal returns err as a refusal, nil for nil.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return &refusedError{err}
}

// lateError is ErrNoAnswer, and the error of the deadline.
type lateError struct{ error }

// orLate returns err, as a lateError if it is that of a deadline.
func orLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &lateError{err}
	}
	return err
}

// Error adds why there was no answer, if that is known.
func (e *lateError) Error() string {
	why := e.error.Error()
	if strings.HasPrefix(why, context.DeadlineExceeded.Error()) {
		return ErrNoAnswer.Error()
	}
	return ErrNoAnswer.Error() + ": " + why
}

func (e *lateError) Unwrap() []error { return []error{ErrNoAnswer, e.error} }
