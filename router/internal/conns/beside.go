package conns

import (
	"context"
	"time"
)

// openLimit is how long a lane may take to connect while nobody waits for it.
const openLimit = 5 * time.Second

// openBeside connects a lane while the reads that are meant for it go down another one. The caller holds mu.
func (l *lane) openBeside() {
	l.state, l.slow = busy, true
	go func() {
		ctx, cancel := context.WithTimeout(l.open, openLimit)
		defer cancel()
		_ = l.ready(ctx) // whoever needs the lane next tries again
		l.serve(l.finish())
	}()
}

// connected picks a lane of reads that has a connection: one that is free, else the one that is likely to send first. It is
// nil if there is none. The caller holds mu.
func (p *Pool) connected(not *lane) *lane {
	var soonest *lane
	for _, l := range p.all[:p.reading] {
		switch {
		case l == not || l.slow || l.state == absent:
		case l.state == idle:
			return l
		case soonest == nil || p.sooner(l, soonest):
			soonest = l
		}
	}
	return soonest
}
