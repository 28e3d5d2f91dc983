package conns

// busy tells whether there are calls under way.
func (ls *Pool) busy() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.inflight > 0
}

// fall has calls fail from now on, those too that wait for a line. What is under way fails with its connection, which
// somebody else closes.
func (ls *Pool) fall(why error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.down = why
	refuse := func(calls []*Request) {
		for _, c := range calls {
			ls.over(c)
			c.wake(nil, ls.Failed(why))
		}
	}
	refuse(ls.waiting)
	ls.waiting = nil
	for _, l := range ls.all {
		refuse(l.queue)
		l.queue = nil
	}
	ls.endIdle()
}

// rise has calls be taken again, on new connections: what came free meanwhile may not have outlived its server.
func (ls *Pool) rise() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.down = nil
	ls.endIdle()
}

// renew has connections be made anew for the next calls. Those in use somebody else closes.
func (ls *Pool) renew() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.endIdle()
}

func (ls *Pool) endIdle() {
	for _, l := range ls.all {
		if l.state == idle {
			l.end()
		}
	}
	ls.endIfEmpty()
}
