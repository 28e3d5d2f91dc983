package conns

import (
	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// wake ends a request's wait with a lane or an error. The caller holds Pool.mu.
func (r *Request) wake(l *lane, err error) {
	r.state = requestWoken
	r.lane = l
	r.err = err
	close(r.woken)
}

// claim is called before a request gets its answer. It returns false if its caller has left, or it has one already.
func (r *Request) claim() bool { return r.settled.CompareAndSwap(false, true) }

// publish ends the wait of a request that was claimed, with an answer or an error.
func (r *Request) publish(a *buffered.Answer, err error) {
	r.answer, r.err = a, err
	r.group.callers.Add(-1)
	close(r.woken)
}

// scope is the one of the request's statement.
func (r *Request) scope() session.Scope {
	sc := r.shard.ScopeAlone()
	sc.Guess = !sc.Reads && r.reads
	sc.Reads = sc.Reads || r.reads
	return sc
}

// fail ends a request that a lane works for and that was not sent. Its caller, if there still is one, tells tracers unless it
// tries again. It may call tracers.
func (r *Request) fail(err error) {
	if r.claim() {
		r.publish(nil, err)
	} else {
		r.op.Fail(err)
	}
}

// abandon follows up on a request whose caller has left while a lane works for it.
func (r *Request) abandon() {
	r.arguments.Lock() // waits until they are no longer read
	defer r.arguments.Unlock()
	if r.group.callers.Add(-1) == 0 {
		r.group.giveUp()
	}
}

// awaitArguments waits until nobody reads the arguments any more.
func (r *Request) awaitArguments() {
	r.arguments.Lock()
	defer r.arguments.Unlock()
}
