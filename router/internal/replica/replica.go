package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

var (
	errRegressed = errors.New("the replica is behind a position that it had replayed: it was restarted, or is another server")
	errNoStandby = errors.New("the server is not a standby: it was promoted")
)

// replica is one replica of a Set.
type replica struct {
	Server
	set   *Set
	woken chan struct{} // wakes the measuring goroutine

	now  atomic.Pointer[state]
	life atomic.Pointer[life]

	// Guarded by Set.mu.
	behind  int64            // in bytes, as of the last measurement
	servers map[string]facts // the servers that it led to, by Seen.Server
}

// facts are the cluster and timeline of a server.
type facts struct {
	system   int64  // system identifier of its cluster
	timeline uint32 // the highest timeline that its data are known to be on
}

// state is what is known about a replica at a time.
type state struct {
	why      error     // why it is not used; nil if it may be
	measured time.Time // before the query was sent
	replayed uint64    // WAL position that it had replayed then, or more
	asOf     time.Time // it has everything that was visible on the primary then; zero if unknown
	server   string    // the server that was measured
	facts
}

// lag returns the maximum age of the data that a read sees now.
func (s *state) lag(now time.Time) time.Duration { return now.Sub(s.asOf) }

// life ends when a replica stops answering, which ends the wait of its reads.
type life struct {
	ctx context.Context
	end context.CancelFunc
}

// begin starts a new life and ends the one before.
func (r *replica) begin() {
	ctx, end := context.WithCancel(r.set.base)
	if before := r.life.Swap(&life{ctx, end}); before != nil {
		before.end()
	}
}

// Doubt stops the use of replica i until the next measurement.
func (s *Set) Doubt(i int, why error) { s.all[i].doubt(why) }

func (r *replica) doubt(why error) {
	r.set.mu.Lock()
	r.now.Store(&state{why: why})
	r.set.mu.Unlock()
	r.wake()
}

// wake makes the replica measure at once.
func (r *replica) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // it is already due
	}
}
