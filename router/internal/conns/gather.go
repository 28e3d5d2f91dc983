package conns

import "runtime"

// gathers reports whether a request waits on an idle lane for others: if many are under way and the way is long, callers who
// were answered together ask again together. The caller holds mu.
func (p *Pool) gathers(r *Request) bool { return !r.lease && r.hint == nil && p.load > 2 && p.far() }

// gather sends the requests that wait for a lane, after the callers that are ready to run have run. It adds no other delay.
func (l *lane) gather() {
	runtime.Gosched()
	l.mu.Lock()
	l.gathering = false
	work := l.next()
	l.mu.Unlock()
	l.serve(work)
}
