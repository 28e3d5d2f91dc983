package conns

import (
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

const (
	// stallLimit is how long requests wait for a lane that makes no progress before they go elsewhere, and the interval at
	// which lanes are checked.
	stallLimit = 5 * time.Millisecond

	// lateFloor is the shortest time after which a group is late: a busy machine stalls now and then. A group that takes
	// stuckAfter times its limit, and that no caller waits for, is canceled on the server.
	lateFloor  = 4 * stallLimit
	stuckAfter = 5

	// resendShare of all reads may be sent again because they are late, and resendBurst more at once: a server that is slow
	// as a whole is not given twice the work.
	resendShare = 0.1
	resendBurst = 64
)

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

// expire cancels a late group, as far as the budget allows: once it has ended, its callers send their requests again, each by itself. A
// request by itself delays no other. The caller holds mu.
func (l *lane) expire(g *group) {
	at := g.begun.Load()
	took, limit := time.Since(time.Unix(0, at)), l.timing.limit()
	if at == 0 || took < limit {
		return
	}
	waiting := 0
	for _, r := range g.requests {
		if !r.settled.Load() {
			waiting++
		}
	}
	if waiting > 0 && l.resendBudget >= float64(min(waiting, resendBurst)) && !g.late.Swap(true) {
		l.resendBudget -= float64(waiting)
		l.late += uint64(waiting)
		g.giveUp()
	}
	if g.callers.Load() == 0 && took > stuckAfter*limit {
		g.stuck = true
		if t := g.current.Load(); t != nil {
			t.KeepAlone()
		}
		g.giveUp()
	}
}

// isLate reports whether a request has failed because its group was late.
func isLate(r *Request, err error) bool {
	return failure.SQLState(err) == "57014" && r.group.late.Load()
}

// timing is how long groups take, from when there was a connection to their last answer: the mean and the mean deviation, as RFC 6298
// has it for round trips.
type timing struct{ mean, deviation time.Duration }

// answered notes how long a group took, even if it was late: when all groups are slow, that is normal.
func (t *timing) answered(took time.Duration) {
	if t.mean == 0 {
		t.mean, t.deviation = took, took/2
		return
	}
	t.deviation += ((took - t.mean).Abs() - t.deviation) / 4
	t.mean += (took - t.mean) / 8
}

// limit returns the time after which a group is late.
func (t *timing) limit() time.Duration { return max(lateFloor, t.mean+4*t.deviation) }
