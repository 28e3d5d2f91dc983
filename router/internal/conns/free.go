package conns

import (
	"runtime"
	"slices"
	"time"
)

// free takes a line back from a caller, and has it go on with what waits.
func (l *line) free(c *Request) {
	if work := l.finish(c); work != nil {
		go l.drive(work)
	}
}

// finish takes a line back from those whose work it has done, and returns the calls that it is to work for next.
func (l *line) finish(done ...*Request) []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range done {
		l.over(c)
	}
	l.slow = false
	l.freed = time.Now()
	if g := l.group; g != nil {
		l.group = nil
		if at := g.begun.Load(); at != 0 && !g.stuck {
			l.timing.answered(time.Duration(l.freed.UnixNano() - at))
		}
	}
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
	return l.session.Broken() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I' ||
		len(l.known) > l.knownLimit || l.freed.After(l.expires)
}

// next decides what becomes of a line that has come free: it goes to who has waited longest, be it in its own queue, for
// any line, or in the queue of a line that has more to do. It returns calls for the line to work for. The caller holds
// mu.
func (l *line) next() []*Request {
	if l.state == absent {
		l.scatter()
	}
	if len(l.waiting) > 0 && (len(l.queue) == 0 || l.waiting[0].turn < l.queue[0].turn) {
		if c := l.waiting[0]; c.lease || l.state == absent && c.hint == nil {
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
	n := slices.IndexFunc(l.waiting, func(c *Request) bool { return c.lease })
	if n < 0 {
		n = len(l.waiting)
	}
	n = min(n, BatchLimit)
	for _, c := range l.waiting[:n] {
		c.state, c.queue = callQueued, l
		l.use(c.shard)
	}
	l.queue = slices.Insert(l.queue, 0, l.waiting[:n]...)
	l.waiting = l.waiting[n:]
}

// cut takes off the queue what is sent together. The caller holds mu.
func (l *line) cut() []*Request {
	n := min(len(l.queue), BatchLimit)
	work := slices.Clone(l.queue[:n])
	g := &group{line: l, calls: work}
	g.callers.Store(int32(n))
	l.group = g
	l.twice = min(l.twice+twiceShare*float64(n), twiceBurst)
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
		l.watchOver()
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
	longest.queue = slices.DeleteFunc(longest.queue, func(c *Request) bool {
		if len(l.queue) == most || !slices.Contains(c.shard.own, l) {
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

// grant gives a line to a call: to its caller, or if that waits for others, to a goroutine. The caller holds mu.
func (l *line) grant(c *Request) {
	if c.hint == nil {
		c.wake(l, nil)
		return
	}
	c.state, c.queue = callQueued, l
	l.queue = append([]*Request{c}, l.queue...)
	go func() {
		c.hint.AwaitAll()
		l.mu.Lock()
		work := l.next()
		l.mu.Unlock()
		l.drive(work)
	}()
}

// drive works for the calls that wait for a line, until it has no more to do.
func (l *line) drive(calls []*Request) {
	for calls != nil {
		l.work(calls)
		runtime.Gosched() // those who have their answers may have a next question
		calls = l.finish(calls...)
	}
}
