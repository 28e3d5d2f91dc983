package conns

import "runtime"

// gathers tells whether a request waits on an idle lane for others: if many are under way and the way is long, callers who
// were answered together ask again together. The caller holds mu.
func (p *Pool) gathers(r *Request) bool { return !r.lease && r.hint == nil && p.load > 2 && p.far() }

// gather sends what waits for a lane, once those callers have had their turn who are ready to run. No time passes besides.
func (l *lane) gather() {
	runtime.Gosched()
	l.mu.Lock()
	l.gathering = false
	work := l.next()
	l.mu.Unlock()
	l.serve(work)
}
