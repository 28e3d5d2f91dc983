package router

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// Failover sets when a host counts as down, and how long calls wait for a new primary.
//
// Each host has a breaker. It opens when calls wait for the host and the host answers neither them nor the router's
// probes for FailAfter, or when the host refuses connections. The router then closes its connections to the host, calls
// under way fail, and new calls fail at once with a [DownError] until the host answers a probe. A slow server is not down
// as long as it answers probes. A local error, such as running out of files or ports, does not open the breaker.
//
// A DSN may name several addresses, those of a primary and its standbys in any order. Calls go only to the primary; the
// router ignores target_session_attrs. It probes all addresses at the same time: once a second, and every 100 ms while it
// knows no primary. It recognizes a promoted standby by its timeline. From then on no call goes to a server on an earlier
// timeline or of another cluster, even if that server takes writes, and the router closes its connections to it. This
// needs permission to call pg_control_system and pg_walfile_name, which every role has unless it was revoked. Without it
// the router checks only pg_is_in_recovery. A restore to an earlier timeline and pg_upgrade need a new router. If two
// primaries share a timeline, the router cannot tell them apart and keeps the one that it found first. If two primaries
// belong to different clusters, it uses neither, unless it found one before the other. The log names each server that
// takes writes and is not the primary.
//
// A DSN with one address, such as that of a server, a pooler or a virtual IP, is used as it is. The router probes such a
// host only while calls wait without an answer, and when a server refuses to write (SQLSTATE 25006), at most ten times a
// second. If a new connection then reaches a server that takes writes, the router closes the connections to the old one.
//
// The router retries these without telling the caller: a statement that was never sent; a BEGIN; a single statement whose
// text shows that it only reads, until the caller has received rows; and a single statement that a server refused because
// it has become a standby. Anything else that was sent and lost fails with [ErrLost].
type Failover struct {
	// FailAfter is how long a host may send nothing while calls wait for it. A host that answers neither the calls nor
	// several probes for this long, on any connection, is down. A slow statement does no harm as long as the server
	// answers the probes. Defaults to 1.5 s.
	FailAfter time.Duration

	// Wait is how long calls to a host with several addresses wait for a new primary, measured from when the host went
	// down. Then they fail. Calls to a host with one address do not wait. Defaults to 5 s.
	Wait time.Duration

	// NoWait makes calls fail at once instead of waiting for a new primary.
	NoWait bool
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
	switch {
	case f.Wait < 0:
		return f, &shards.FieldError{Field: "Failover.Wait", Found: "less than 0", Expected: "how long calls wait for a primary, or 0 for 5 s; to not wait, set NoWait"}
	case f.NoWait:
		f.Wait = 0
	case f.Wait == 0:
		f.Wait = defaultWait
	}
	return f, nil
}

// ErrHostDown says that a call was not sent because its host is down. See [DownError].
var ErrHostDown = failure.ErrHostDown

// DownError is the error of a call that was not sent because its host is down.
type DownError struct {
	Since time.Time // when the host was found down
	Err   error     // why
}

func newDownError(since time.Time, cause error) error { return &DownError{Since: since, Err: cause} }

// Error returns since when the host is down, and why.
func (e *DownError) Error() string {
	return fmt.Sprintf("%v since %s: %v", ErrHostDown, e.Since.UTC().Format("15:04:05.000 MST"), e.Err)
}

// Unwrap returns [ErrHostDown] and the cause.
func (e *DownError) Unwrap() []error { return []error{ErrHostDown, e.Err} }

// Breaker is the state of a host's breaker. It says whether calls may go to the host.
type Breaker int

const (
	// BreakerClosed lets calls through.
	BreakerClosed Breaker = iota
	// BreakerOpen makes calls wait or fail, see [Failover]: the host is down, or the router does not know yet which of
	// its addresses is the primary.
	BreakerOpen
	// BreakerHalfOpen lets calls through again: the host has answered a probe, but no call yet.
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
