package router

import (
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Failover says when a host is taken for down, and how long calls wait for what takes its place.
type Failover struct {
	// FailAfter is how long a host may be silent while calls wait for it: when nothing has come from it for so long, on
	// any connection, neither to the calls nor to questions asked several times besides, it is down. That a statement
	// takes long is no silence as long as the server answers the questions. Defaults to 1.5 s.
	FailAfter time.Duration

	// Wait is how long after a host with several addresses was found down its calls wait for a new primary before they
	// fail. Those to a host with one address do not wait. Less than 0 means that no call waits. Defaults to 5 s.
	Wait time.Duration
}

const (
	defaultFailAfter = 1500 * time.Millisecond
	defaultWait      = 5 * time.Second
)

func (f Failover) withDefaults() (Failover, error) {
	switch {
	case f.FailAfter < 0:
		return f, &shards.FieldError{Field: "Failover.FailAfter", Found: "less than 0", Expected: "how long a host may be silent, or 0 for 1.5 s"}
	case f.FailAfter == 0:
		f.FailAfter = defaultFailAfter
	}
	if f.Wait == 0 {
		f.Wait = defaultWait
	}
	return f, nil
}

// ErrHostDown is in the errors of calls that were not sent because their host is down. See [DownError].
var ErrHostDown = errors.New("the host is down")

// DownError says that a call was not sent, because its host is down. It wraps [ErrHostDown].
type DownError struct {
	Since time.Time // when the host was found down
	Err   error     // why
}

// Error says since when, and why.
func (e *DownError) Error() string {
	return fmt.Sprintf("%v since %s: %v", ErrHostDown, e.Since.UTC().Format("15:04:05.000 MST"), e.Err)
}

// Unwrap returns ErrHostDown and the cause.
func (e *DownError) Unwrap() []error { return []error{ErrHostDown, e.Err} }

// Breaker is what becomes of calls to a host.
type Breaker int

const (
	// BreakerClosed lets calls go to the host.
	BreakerClosed Breaker = iota
	// BreakerOpen has calls wait or fail, see [Failover]: the host is down, or it is not known yet which of its
	// addresses is the primary.
	BreakerOpen
	// BreakerHalfOpen lets calls go to the host again, which has answered a probe, and no call so far.
	BreakerHalfOpen
)

// String returns closed, open or half-open.
func (b Breaker) String() string {
	switch b {
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	default:
		return "closed"
	}
}
