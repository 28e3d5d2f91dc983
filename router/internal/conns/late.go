package conns

import "time"

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
			c.publish(nil, c.shard.Failed(ErrApart))
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
