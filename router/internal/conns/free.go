package conns

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// free takes a lane back after some requests, and goes on with what waits.
func (l *lane) free(done ...*Request) {
	if work := l.finish(done...); work != nil {
		go l.serve(work)
	}
}

// finish takes a lane back after some requests, and returns those that it is to send next.
func (l *lane) finish(done ...*Request) []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range done {
		l.over(r)
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

// worn reports whether the lane's connection should not be used again.
func (l *lane) worn() bool {
	if l.lease == nil {
		return true
	}
	conn := l.lease.Conn()
	return l.session.Broken() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I' ||
		len(l.known) > l.knownLimit || l.freed.After(l.expires)
}

// next gives a free lane to the request that has waited longest, in its own queue, for any lane, or in the queue of a lane
// that has more to do. It returns the requests that the lane is to send. The caller holds mu.
func (l *lane) next() []*Request {
	if l.state == absent {
		l.reassign()
		l.openForWaiting()
		l.endIfEmpty()
		return nil
	}
	if len(l.waiting) > 0 && (len(l.queue) == 0 || l.waiting[0].turn < l.queue[0].turn) {
		if i := l.nearest(); l.waiting[i].lease {
			r := l.waiting[i]
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.take(r)
			r.wake(l, nil)
			l.reassign() // r may keep the lane for long
			return nil
		}
		l.takeWaiting()
	}
	switch {
	case len(l.queue) > 0:
		l.state = busy
		return l.takeGroup()
	case l.closed != nil:
		l.end()
	default:
		l.state = idle
		l.watchIdle()
	}
	l.endIfEmpty()
	return nil
}

// nearest returns which of the requests that wait for any lane gets the lane: one of the shard whose path its session has, if there is one
// among the first so many, else the first. No request is passed by more than passingBy. The caller holds mu.
func (l *lane) nearest() int {
	path, first := l.session.Path(), l.waiting[0]
	if path == "" || !first.lease {
		return 0
	}
	for i, r := range l.waiting {
		switch {
		case r.turn-first.turn > passingBy:
			return 0
		case r.lease && r.shard != nil && r.shard.Path == path:
			return i
		}
	}
	return 0
}

// passingBy is how many requests may be given a lane before one that has waited for longer, since the session has the path of their shard
// (inserts over 16 shards).
const passingBy = 64

// takeWaiting takes requests that wait for any lane into the lane's queue, up to the first that wants a lane itself. The caller
// holds mu.
func (l *lane) takeWaiting() {
	n := slices.IndexFunc(l.waiting, func(r *Request) bool { return r.lease })
	if n < 0 {
		n = len(l.waiting)
	}
	n = min(n, BatchLimit)
	for _, r := range l.waiting[:n] {
		r.state, r.queue = requestQueued, l
	}
	l.queue = slices.Insert(l.queue, 0, l.waiting[:n]...)
	l.waiting = l.waiting[n:]
}

// takeGroup takes the requests that are sent together from the queue. The caller holds mu.
func (l *lane) takeGroup() []*Request {
	n := min(len(l.queue), BatchLimit)
	for n < min(len(l.queue), crowdLimit) && l.queue[n].hint != nil {
		n++
	}
	work := slices.Clone(l.queue[:n])
	g := &group{lane: l, requests: work}
	g.callers.Store(int32(n))
	l.group = g
	l.resendBudget = min(l.resendBudget+resendShare*float64(n), resendBurst)
	l.queue = l.queue[n:]
	for _, r := range work {
		l.learn(r.shard)
		r.state = requestSent
		r.group = g
	}
	l.progress.Add(1)
	l.sent++
	l.began = l.sent
	l.sizes[min(n, BatchLimit)]++
	if n > 1 {
		l.batches++
		l.batched += uint64(n)
		l.watchProgress()
	}
	return work
}

// reassign finds other lanes for the requests in the lane's queue. The caller holds mu.
func (l *lane) reassign() {
	queue := l.queue
	l.queue = nil
	for _, r := range queue {
		if other := l.assign(r, l); other != nil {
			other.grant(r)
		}
	}
}

// grant gives a lane to a request: to its caller, or if the request waits for others, to a goroutine. The caller holds mu.
func (l *lane) grant(r *Request) {
	if r.hint == nil {
		r.wake(l, nil)
		return
	}
	r.state, r.queue = requestQueued, l
	l.queue = append([]*Request{r}, l.queue...)
	go func() {
		r.hint.AwaitAll()
		l.mu.Lock()
		work := l.next()
		l.mu.Unlock()
		l.serve(work)
	}()
}

// serve sends the requests that wait for a lane, until there are no more.
func (l *lane) serve(requests []*Request) {
	for requests != nil {
		if ok, _ := l.ready(context.Background()); !ok { // a lane with hooks serves no groups
			l.putBack(requests)
			requests = l.finish()
			continue
		}
		l.pipeline(requests)
		runtime.Gosched() // callers with an answer may have a next request
		requests = l.finish(requests...)
	}
}
