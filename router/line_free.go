package router

import (
	"slices"
	"time"
)

const (
	// batchLimit is how many calls are sent down a line together.
	batchLimit = 32
	// patience is how long calls wait for a line that does not get on, before they go elsewhere.
	patience = 5 * time.Millisecond
	// triesLimit is how often a call is put back that could not be sent.
	triesLimit = 3
)

// free takes a line back from a caller, and has it go on with what waits.
func (l *line) free(c *call) {
	if work := l.finish(c); work != nil {
		go l.drive(work)
	}
}

// finish takes a line back from those whose work it has done, and returns the calls that it is to work for next.
func (l *line) finish(done ...*call) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range done {
		l.over(c)
	}
	l.slow = false
	l.freed = time.Now()
	if l.worn() {
		l.end()
	}
	return l.next()
}

// worn tells whether the line's connection should not be used again.
func (l *line) worn() bool {
	if l.lease == nil {
		return true
	}
	conn := l.lease.Conn()
	return l.session.broken() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I' ||
		len(l.known) > l.host.knownLimit || l.freed.After(l.expires)
}

// next decides what becomes of a line that has come free: it goes to who has waited longest, be it in its own queue, for
// any line, or in the queue of a line that has more to do. It returns calls for the line to work for. The caller holds
// mu.
func (l *line) next() []*call {
	if l.state == absent {
		l.scatter()
	}
	if len(l.waiting) > 0 && (len(l.queue) == 0 || l.waiting[0].turn < l.queue[0].turn) {
		if c := l.waiting[0]; c.lease || l.state == absent && !c.started {
			l.waiting = l.waiting[1:]
			l.take(c)
			c.wake(l, nil)
			l.scatter() // c may keep the line for long
			return nil
		}
		l.fetch()
	}
	if len(l.queue) == 0 && l.state != absent {
		l.steal()
	}
	switch {
	case len(l.queue) > 0:
		l.state = busy
		return l.cut()
	case l.closed != nil && l.state != absent:
		l.end()
	case l.state != absent:
		l.state = idle
		l.lookLater()
	}
	l.endIfEmpty()
	return nil
}

// fetch takes calls that wait for any line into the line's queue, up to the first that wants a line itself. The caller
// holds mu.
func (l *line) fetch() {
	n := slices.IndexFunc(l.waiting, func(c *call) bool { return c.lease })
	if n < 0 {
		n = len(l.waiting)
	}
	n = min(n, batchLimit)
	for _, c := range l.waiting[:n] {
		c.state, c.queue = callQueued, l
		l.use(c.home)
	}
	l.queue = slices.Insert(l.queue, 0, l.waiting[:n]...)
	l.waiting = l.waiting[n:]
}

// cut takes off the queue what is sent together. The caller holds mu.
func (l *line) cut() []*call {
	n := min(len(l.queue), batchLimit)
	g := &group{line: l}
	g.callers.Store(int32(n))
	work := slices.Clone(l.queue[:n])
	l.queue = l.queue[n:]
	for _, c := range work {
		c.state = callSent
		c.group = g
	}
	l.steps.Add(1)
	l.sent++
	l.began = l.sent
	l.sizes[n]++
	if n > 1 {
		l.batches++
		l.batched += uint64(n)
	}
	return work
}

// steal takes calls from the line with the longest queue, if this one has worked for their shards too. The caller holds
// mu.
func (l *line) steal() {
	var longest *line
	for _, other := range l.all {
		if len(other.queue) > 0 && (longest == nil || len(other.queue) > len(longest.queue)) {
			longest = other
		}
	}
	if longest == nil {
		return
	}
	most := (len(longest.queue) + 1) / 2
	longest.queue = slices.DeleteFunc(longest.queue, func(c *call) bool {
		if len(l.queue) == most || !slices.Contains(c.home.lines, l) {
			return false
		}
		c.queue = l
		l.queue = append(l.queue, c)
		return true
	})
}

// scatter finds other lines for the calls in the line's queue. The caller holds mu.
func (l *line) scatter() {
	queue := l.queue
	l.queue = nil
	for _, c := range queue {
		if other := l.place(c, l); other != nil {
			other.grant(c)
		}
	}
}

// watchOver looks after the calls in the line's queue. The caller holds mu.
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

// look sends the calls in the queue of a line elsewhere that has not got on.
func (l *line) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if len(l.queue) == 0 {
		return
	}
	if l.steps.Load() == l.seen {
		l.slow = true
		l.scatter()
	}
	if len(l.queue) > 0 {
		l.watchOver()
	}
}

// lookLater has idle lines looked for. The caller holds mu.
func (ls *lines) lookLater() {
	if ls.later == nil && ls.closed == nil {
		ls.later = time.AfterFunc(ls.period, ls.lookForIdle)
	}
}

// putBack has other lines work for calls that were not sent, because of err. They come first again, a few times.
func (l *line) putBack(calls []*call, err error) {
	var back, failed []*call
	l.mu.Lock()
	for _, c := range calls {
		c.tries++
		if c.settled.Load() || c.tries > triesLimit {
			failed = append(failed, c)
			continue
		}
		c.state, c.queue = callQueued, l
		back = append(back, c)
	}
	l.queue = append(back, l.queue...)
	l.mu.Unlock()
	l.host.resent.Add(uint64(len(back)))
	for _, c := range failed { // without the lock, for it may call tracers
		c.fail(l.host.failed(err))
	}
}
