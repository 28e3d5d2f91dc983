package conns

// hasRequests reports whether there are requests under way.
func (p *Pool) hasRequests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inflight > 0
}

// markDown makes requests fail from now on, including those that wait for a lane. What is under way fails with its
// connection, which the caller closes.
func (p *Pool) markDown(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = why
	refuse := func(requests []*Request) {
		for _, r := range requests {
			p.over(r)
			r.wake(nil, p.Failed(why))
		}
	}
	refuse(p.waiting)
	p.waiting = nil
	for _, l := range p.all {
		refuse(l.queue)
		l.queue = nil
	}
	p.endIdle()
}

// markUp accepts requests again, on new connections: one that was given back meanwhile may have lost its server.
func (p *Pool) markUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = nil
	p.endIdle()
}

// renew closes idle connections, so that the next requests have new ones. The caller closes those in use.
func (p *Pool) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endIdle()
}

func (p *Pool) endIdle() {
	for _, l := range p.all {
		if l.state == idle {
			l.end()
		}
	}
	p.endIfEmpty()
}
