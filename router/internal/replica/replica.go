package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

var (
	errRegressed = errors.New("the replica is behind an earlier position of its own: it was restarted, or is another server")
	errNoStandby = errors.New("the server is not a standby: it was promoted")
)

// replica is one of a set.
type replica struct {
	Server
	set   *Set
	woken chan struct{} // makes it measure at once

	now  atomic.Pointer[state]
	life atomic.Pointer[life]

	// Guarded by Set.mu.
	behind  int64            // in bytes, as of the last measurement
	servers map[string]facts // that it led to, by Seen.Server
}

// facts are what is known about a server.
type facts struct {
	system   int64  // its cluster
	timeline uint32 // the highest that its data are known to be on
}

// state is what is known about a replica at a time.
type state struct {
	why      error     // why it is not used; nil if it may be
	measured time.Time // before it was asked
	replayed uint64    // at least, then
	asOf     time.Time // it has everything that was visible on the primary then; zero if unknown
	server   string    // that was measured
	facts
}

// lag returns how old at most the data are that a read sees now.
func (s *state) lag(now time.Time) time.Duration { return now.Sub(s.asOf) }

// life ends when a replica stops answering, which ends the wait of its reads.
type life struct {
	ctx context.Context
	end context.CancelFunc
}

// begin begins a life and ends the one before.
func (r *replica) begin() {
	ctx, end := context.WithCancel(r.set.base)
	if before := r.life.Swap(&life{ctx, end}); before != nil {
		before.end()
	}
}

// Doubt stops the use of replica i until it was measured again.
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
	default: // it will be
	}
}
