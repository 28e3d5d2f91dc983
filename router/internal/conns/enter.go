package conns

import (
	"slices"
)

// enter finds a line for a call. It returns the line if the caller is to use it, with or without a connection; else the
// call waits, and is woken with a line or with an answer.
func (ls *Pool) enter(c *Request) (*line, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed != nil {
		return nil, ls.closed
	}
	if ls.down != nil {
		return nil, ls.down
	}
	ls.turns++
	c.turn = ls.turns
	ls.inflight++
	ls.load += (float64(ls.inflight) - ls.load) / loadCalls
	c.inflight = true
	if h := c.shard; h != nil {
		h.inflight++
		h.load += (float64(h.inflight) - h.load) / loadCalls
	}
	return ls.place(c, nil), nil
}

// place gives a call a line, or puts it into a queue. The caller holds mu.
func (ls *Pool) place(c *Request, not *line) *line {
	l := ls.choose(c, not)
	if c.woken == nil && (l == nil || l.state == busy) {
		c.woken = make(chan struct{})
	}
	switch {
	case l == nil:
		ls.wait(c)
		return nil
	case l.state != busy:
		l.take(c)
		return l
	}
	l.use(c.shard)
	c.state = callQueued
	c.queue = l
	l.queue = append(l.queue, c)
	l.watchOver()
	return nil
}

// wait has a call wait for any line, behind those that came before it. The caller holds mu.
func (ls *Pool) wait(c *Request) {
	c.state = callWaiting
	at := len(ls.waiting)
	for at > 0 && ls.waiting[at-1].turn > c.turn {
		at--
	}
	ls.waiting = slices.Insert(ls.waiting, at, c)
}

// take marks a line as a caller's. The caller holds mu.
func (l *line) take(c *Request) {
	l.state = busy
	l.slow = c.slow
	l.steps.Add(1)
	l.use(c.shard)
}

// leave ends the wait of a call whose caller does not want to wait any longer, and tells whether a line was at work for
// it. It returns false if the call has been woken meanwhile: then it has to be taken as it is.
func (ls *Pool) leave(c *Request) (sent, left bool) {
	ls.mu.Lock()
	mine := func(other *Request) bool { return other == c }
	switch c.state {
	case callWaiting:
		ls.waiting = slices.DeleteFunc(ls.waiting, mine)
		ls.over(c)
	case callQueued:
		c.queue.queue = slices.DeleteFunc(c.queue.queue, mine)
		ls.over(c)
	case callSent:
		sent = true
	default:
		ls.mu.Unlock()
		return false, false
	}
	left = !sent || c.settled.CompareAndSwap(false, true)
	ls.mu.Unlock()
	if sent && left {
		c.abandoned()
	}
	return sent, left
}

// over notes that a call has ended. The caller holds mu.
func (ls *Pool) over(c *Request) {
	if !c.inflight {
		return
	}
	c.inflight = false
	ls.inflight--
	if c.shard != nil {
		c.shard.inflight--
	}
}
