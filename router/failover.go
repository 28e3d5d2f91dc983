package router

import (
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// Failover says when a host counts as down, and how long calls wait for a new primary.
//
// Each host has a breaker. It opens when the host has sent nothing for FailAfter while calls wait for it, neither to
// them nor to the router's own probes, or when it refuses connections: connections are closed, calls under way
// fail, and new ones fail at once with a [DownError], until the host answers a probe. A slow server is not down as long as
// it answers probes. An error of this machine while it connects, such as too few files or ports, says nothing of the host.
//
// A DSN may name several addresses, those of a primary and its standbys in any order. Calls go to the primary alone,
// whatever target_session_attrs says. All addresses are probed at the same time, once a second, and every tenth of a
// second while no primary is known. A promoted standby shows by its timeline: from then on no call goes to a server of an
// earlier timeline, or of another cluster, even if it takes writes, and the connections to it are closed. This needs the
// right to call pg_control_system and pg_walfile_name, which everybody has unless it was revoked; without it only
// pg_is_in_recovery counts. A restore to an earlier timeline, and pg_upgrade, need a new router. Of two primaries on one
// timeline, which nothing tells apart, the one that was found first stays. Of two of different clusters none is used,
// unless one was found before the other. The log names each server that takes writes and is not the primary.
//
// A DSN with one address, also that of a pooler or a virtual IP, is used as it is. Such a host is probed only while calls
// wait and nothing comes, and when a server refuses to write (SQLSTATE 25006), at most ten times a second. If a new
// connection then leads to a server that takes writes, the connections to the old one are closed.
//
// What is sent again, without the caller noticing: what was never sent; a BEGIN; a single statement that only reads by its
// words, until rows of it were handed out; a single statement that a server refused because it is a standby by now.
// Anything else that was sent and lost fails with [ErrLost].
type Failover struct {
	// FailAfter is how long a host may be silent while calls wait for it: when nothing has come from it for so long, on
	// any connection, neither to the calls nor to several probes, it is down. A slow statement is no silence as long as the
	// server answers the probes. Defaults to 1.5 s.
	FailAfter time.Duration

	// Wait is how long after a host with several addresses was found down its calls wait for a new primary before they
	// fail. Those to a host with one address do not wait. Defaults to 5 s.
	Wait time.Duration

	// NoWait has no call wait for a new primary.
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
		return f, &shards.FieldError{Field: "Failover.Wait", Found: "less than 0", Expected: "how long calls wait for a primary, or 0 for 5 s; NoWait has none wait"}
	case f.NoWait:
		f.Wait = 0
	case f.Wait == 0:
		f.Wait = defaultWait
	}
	return f, nil
}

// ErrHostDown is in the errors of calls that were not sent because their host is down. See [DownError].
var ErrHostDown = failure.ErrHostDown

// DownError says that a call was not sent, because its host is down. It wraps [ErrHostDown].
type DownError = failure.DownError

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
