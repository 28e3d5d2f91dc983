package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

var (
	errRegressed = errors.New("the replica is behind where it was: it was started again, or is another one")
	errNoStandby = errors.New("the server is no standby: it was promoted")
)

// replica is one of a set.
type replica struct {
	Server
	set   *Set
	woken chan struct{} // has it measured at once

	now  atomic.Pointer[state]
	life atomic.Pointer[life]

	// Guarded by Set.mu.
	behind  int64            // in bytes, as of the last measurement
	servers map[string]facts // that it has led to
}

// facts are what is known of a server, by its name in [Seen].
type facts struct {
	system   int64  // the cluster that it is of
	timeline uint32 // the highest that its data are known to be of
}

// state is what is known of a replica at a time.
type state struct {
	why      error     // it is not used; nil if it may be
	measured time.Time // before it was asked
	replayed uint64    // how far it was then, at least
	asOf     time.Time // it has everything that could be seen on the primary then; zero if unknown
	server   string    // which was asked
	facts
}

// lag returns how old at most is what a read sees that begins now.
func (s *state) lag(now time.Time) time.Duration { return now.Sub(s.asOf) }

// life ends when a replica does not answer any more: reads that wait for it need not wait any longer.
type life struct {
	ctx context.Context
	end context.CancelFunc
}

// begin begins a life, and ends the one before.
func (r *replica) begin() {
	ctx, end := context.WithCancel(r.set.base)
	if before := r.life.Swap(&life{ctx, end}); before != nil {
		before.end()
	}
}

// Doubt has replica i not used until it was measured again.
func (s *Set) Doubt(i int, why error) { s.all[i].doubt(why) }

func (r *replica) doubt(why error) {
	r.set.mu.Lock()
	r.now.Store(&state{why: why})
	r.set.mu.Unlock()
	r.wake()
}

// wake has the replica measured at once.
func (r *replica) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // it will be
	}
}
