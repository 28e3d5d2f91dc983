package router

import "time"

const (
	// patience is how long calls wait for a line that does not get on, before they go elsewhere, and how often lines are
	// looked at.
	patience = 5 * time.Millisecond

	// lateFloor is how long a group may take at least that is not late: a machine that is busy stalls now and then. One that
	// takes stuckAfter times as long as that, and that nobody waits for any more, is cancelled on the server.
	lateFloor  = 4 * patience
	stuckAfter = 5

	// What is late is asked for twice: one read in ten, and so many more at once. A server that is slow as a whole is not
	// given twice the work.
	twiceShare = 0.1
	twiceBurst = 64
)

// timing is how long groups take, from when there was a connection to their last answer: the mean and the mean deviation, as RFC 6298
// has it for round trips.
type timing struct{ mean, deviation time.Duration }

// answered takes note of a group that is done, also if it was late: so that when all of them are, it is usual.
func (t *timing) answered(g *group, now time.Time) {
	at := g.begun.Load()
	if at == 0 || g.stuck {
		return
	}
	took := time.Duration(now.UnixNano() - at)
	if t.mean == 0 {
		t.mean, t.deviation = took, took/2
		return
	}
	t.deviation += ((took - t.mean).Abs() - t.deviation) / 4
	t.mean += (took - t.mean) / 8
}

// limit returns how long a group may take that is not late.
func (t *timing) limit() time.Duration { return max(lateFloor, t.mean+4*t.deviation) }

// watchOver looks after the calls that wait for the line, in its queue or in a group. The caller holds mu.
func (l *line) watchOver() {
	if l.armed {
		return
	}
	l.armed = true
	l.seen = l.steps.Load()
	if l.watch == nil {
		l.watch = time.AfterFunc(patience, l.look)
	} else {
		l.watch.Reset(patience)
	}
}

// look sends calls elsewhere: those in the queue of a line that has not got on, and those of a group that is late.
func (l *line) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if len(l.queue) > 0 && l.steps.Load() == l.seen {
		l.slow = true
		l.scatter()
	}
	crowd := l.group != nil && len(l.group.calls) > 1 && !l.group.stuck
	if crowd {
		l.expire(l.group)
	}
	if len(l.queue) > 0 || crowd {
		l.watchOver()
	}
}

// expire has the callers of a group that is late ask again, each apart, as far as that may be done twice. A call by itself
// keeps nobody waiting. The caller holds mu.
func (l *line) expire(g *group) {
	at := g.begun.Load()
	took, limit := time.Since(time.Unix(0, at)), l.timing.limit()
	if at == 0 || took < limit {
		return
	}
	for _, c := range g.calls {
		if l.twice < 1 {
			return
		}
		if c.settled.Load() {
			continue
		}
		c.late.Store(true)
		if c.claim() {
			c.publish(nil, c.home.Failed(errApart))
			l.twice--
		}
	}
	if g.callers.Load() == 0 && took > stuckAfter*limit {
		g.stuck = true
		if t := g.current.Load(); t != nil {
			t.KeepAlone()
		}
		g.giveUp()
	}
}
