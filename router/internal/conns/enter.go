package conns

import (
	"slices"
)

// admitRequest finds a lane for a request. It returns the lane if the caller is to use it; else the request waits, and is woken
// with a lane or with an answer.
func (p *Pool) admitRequest(r *Request) (*lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return nil, p.closed
	}
	if p.down != nil {
		return nil, p.down
	}
	if r.turn == 0 {
		p.turns++
		r.turn = p.turns
	}
	p.inflight++
	p.load += (float64(p.inflight) - p.load) / loadRequests
	r.inflight = true
	if s := r.shard; s != nil {
		s.inflight++
		s.load += (float64(s.inflight) - s.load) / loadRequests
	}
	return p.assign(r, nil), nil
}

// assign gives a request a lane, or puts it into a queue. The caller holds mu.
func (p *Pool) assign(r *Request, not *lane) *lane {
	l := p.choose(r, not)
	if l != nil && l.state == absent {
		l = p.insteadOf(l, r, not)
	}
	gathers := l != nil && l.state == idle && p.gathers(r)
	if r.woken == nil && (l == nil || l.state == busy || gathers) {
		r.woken = make(chan struct{})
	}
	switch {
	case l == nil:
		p.enqueue(r)
		return nil
	case gathers:
		l.state, l.gathering, l.slow = busy, true, false
		go l.gather()
	case l.state != busy:
		l.take(r)
		return l
	}
	r.state = requestQueued
	r.queue = l
	l.queue = append(l.queue, r)
	l.watchProgress()
	return nil
}

// enqueue has a request wait for any lane, behind those that came before it. In a pool that closes it fails. The caller holds mu.
func (p *Pool) enqueue(r *Request) {
	if p.closed != nil {
		p.over(r)
		r.wake(nil, p.Failed(p.closed))
		return
	}
	r.state = requestWaiting
	at := len(p.waiting)
	for at > 0 && p.waiting[at-1].turn > r.turn {
		at--
	}
	p.waiting = slices.Insert(p.waiting, at, r)
}

// take marks a lane as a caller's. The caller holds mu.
func (l *lane) take(r *Request) {
	l.state = busy
	l.slow = r.lease
	l.progress.Add(1)
	l.learn(r.shard)
}

// leave ends the wait of a request whose caller does not want to wait any longer, and reports whether a lane was at work for
// it. It returns false if the request has been woken meanwhile, with a lane or an answer.
func (p *Pool) leave(r *Request) (sent, left bool) {
	p.mu.Lock()
	mine := func(other *Request) bool { return other == r }
	switch r.state {
	case requestWaiting:
		p.waiting = slices.DeleteFunc(p.waiting, mine)
		p.over(r)
	case requestQueued:
		r.queue.queue = slices.DeleteFunc(r.queue.queue, mine)
		p.over(r)
	case requestSent:
		sent = true
	default:
		p.mu.Unlock()
		return false, false
	}
	if !sent {
		r.state = requestWoken // nobody wakes it
	}
	left = !sent || r.settled.CompareAndSwap(false, true)
	p.mu.Unlock()
	if sent && left {
		r.abandon()
	}
	return sent, left
}

// over notes that a request has ended. The caller holds mu.
func (p *Pool) over(r *Request) {
	if !r.inflight {
		return
	}
	r.inflight = false
	p.inflight--
	if r.shard != nil {
		r.shard.inflight--
	}
}

// learn notes that the lane works for a shard. The caller holds mu.
func (l *lane) learn(s *Shard) {
	if s != nil {
		l.known[s.Number] = struct{}{}
	}
}
