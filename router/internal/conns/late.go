package conns

import "time"

// watchProgress starts the timer that checks a lane for which requests wait, in its queue or in a group. The caller holds mu.
func (l *lane) watchProgress() {
	if l.watching {
		return
	}
	l.watching = true
	l.lastProgress = l.progress.Load()
	if l.watch == nil {
		l.watch = time.AfterFunc(stallLimit, l.checkProgress)
	} else {
		l.watch.Reset(stallLimit)
	}
}

// checkProgress sends requests elsewhere: those in the queue of a lane that has made no progress, and those of a group that
// is late.
func (l *lane) checkProgress() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watching = false
	if len(l.queue) > 0 && l.progress.Load() == l.lastProgress {
		l.slow = true
		l.reassign()
	}
	crowd := l.group != nil && len(l.group.requests) > 1 && !l.group.stuck
	if crowd {
		l.expire(l.group)
	}
	if len(l.queue) > 0 || crowd {
		l.watchProgress()
	}
}

// expire makes the callers of a late group send their requests again, each by itself, as far as the budget allows. A request
// by itself keeps nobody waiting. The caller holds mu.
func (l *lane) expire(g *group) {
	at := g.begun.Load()
	took, limit := time.Since(time.Unix(0, at)), l.timing.limit()
	if at == 0 || took < limit {
		return
	}
	for _, r := range g.requests {
		if l.resendBudget < 1 {
			return
		}
		if r.settled.Load() {
			continue
		}
		r.late.Store(true)
		if r.claim() {
			r.publish(nil, r.shard.Failed(ErrApart))
			l.resendBudget--
			l.late++
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
