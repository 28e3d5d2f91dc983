package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoAnswer says that a store did not answer in time.
	ErrNoAnswer = errors.New("no answer in time")

	// ErrOutcomeUnknown says that a change was sent and not answered.
	ErrOutcomeUnknown = errors.New("the store did not answer: it may or may not have changed the map")
)

// ConflictError says that the current version is not the one that a change follows.
type ConflictError struct {
	Found int // the current version, 0 for none
}

// Error names the version.
func (e *ConflictError) Error() string { return fmt.Sprintf("the store holds version %d", e.Found) }

// refusalError marks an error as a refusal.
type refusalError struct{ error }

func (e *refusalError) Unwrap() error { return e.error }

// Refusal marks an error as a refusal: the store would refuse the same change again. It returns nil for nil.
func Refusal(err error) error {
	if err == nil {
		return nil
	}
	return &refusalError{err}
}

// IsRefusal reports whether an error is a [Refusal].
func IsRefusal(err error) bool { return errors.As(err, new(*refusalError)) }

// unsentError marks the error of a request that was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// Unsent marks the error of a request that was not sent, so that its outcome is known.
func Unsent(err error) error { return &unsentError{err} }

// IsUnsent reports whether an error is [Unsent].
func IsUnsent(err error) bool { return errors.As(err, new(*unsentError)) }

// lateError is ErrNoAnswer and the error of the deadline.
type lateError struct{ error }

// Late returns the error of a deadline as ErrNoAnswer, and other errors as they are.
func Late(err error) error {
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
