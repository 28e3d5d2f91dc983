package conns

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"
)

// retryLimit is how many times a request is repeated on a host with one address, and on any that has lost its connections.
const retryLimit = 3

// retryPause is the pause before each further one.
const retryPause = 100 * time.Millisecond

// Attempts makes the requests of one call of the service, one after another, and knows how the earlier ones ended. The zero
// Attempts is ready to use.
type Attempts struct {
	began  time.Time // zero before the first failure
	count  int
	lost   int       // how many of them with a connection that it was sent on
	turns  uint64    // of the host's watch when the request was made
	missed time.Time // when its shard was first not there; zero if it always was
	apart  *Request  // that was sent with others in vain: the next is to have a connection of its own; nil if none was

	asked time.Time // when the service asked for it, by the first operation; zero without tracers
	sent  int       // how often it was sent

	op *tracers.Operation // that goes on with the next
}

// prepare passes on to a request and its operation what is known of those before it.
func (t *Attempts) prepare(r *Request) {
	if t.apart != nil {
		r.lease, r.resent = true, true
		if t.apart.shard.pool == r.shard.pool {
			r.turn = t.apart.turn // it has waited since
		}
	}
	switch {
	case r.op == nil:
	case t.op != nil:
		r.op, r.ctx, t.op = t.op, t.op, nil
	case t.asked.IsZero():
		t.asked = r.op.Began
	default:
		r.op.Began, r.op.Resent = t.asked, t.sent
	}
}

// record notes what has become of a request's operation. Tracers hear of one that is given up unsent.
func (t *Attempts) record(r *Request, again bool, err error) {
	switch {
	case r.op == nil:
	case !again:
		_ = r.Unsent(err)
	case r.op.Running():
		t.op = r.op
	case r.op.Together > 0:
		t.asked, t.sent = r.op.Began, r.op.Resent+1
	default:
		t.asked, t.sent = r.op.Began, r.op.Resent
	}
}

// Acquire makes a request for an operation on a shard, and returns it once it was given a lane. It has the context of the
// operation.
func (t *Attempts) Acquire(ctx context.Context, at *Shard, kind operation.Kind, summary string) (*Request, error) {
	t.turns = at.pool.primary.Turns()
	r := at.pool.forLane(ctx, at, kind, summary)
	t.prepare(r)
	return r, at.pool.await(r)
}

// Submit makes a request of a single statement, or with whole of what may be several, and returns it once it was given its answer
// or a lane. With server it goes to no other server of a replica.
func (t *Attempts) Submit(ctx context.Context, at *Shard, server, sql string, args []any, whole bool) (*Request, error) {
	t.turns = at.pool.primary.Turns()
	r := at.pool.forStatement(ctx, at, sql, args, whole)
	r.server = server
	t.prepare(r)
	return r, r.submit()
}

// retry reports whether to repeat a request that failed, and waits until that is likely to succeed. repeats says that the
// request may run twice: it changes nothing. If it is not repeated, the error is for its caller: err, or that the host is
// down if nothing of the request has taken effect.
//
// What was not sent may be repeated, and so may what changes nothing and was lost with its connection. A host with several
// addresses has until Failover.Wait is over; one with a single address gets a few attempts at once, and none if no
// connection can be made. A request that is lost several times may be what ends its server.
func (p *Pool) retry(ctx context.Context, shard *Shard, t *Attempts, repeats bool, err error) (bool, error) {
	if err == nil || ctx.Err() != nil || Retired(err) {
		return false, err
	}
	if errors.Is(err, failure.ErrMoved) {
		again := p.awaitMoved(ctx, shard, t)
		if again {
			p.resent.Add(1)
		}
		return again, err
	}
	w, moved := p.primary, shard.gone.Load()
	if t.began.IsZero() {
		t.began = time.Now()
	}
	t.count++
	if errors.Is(err, failure.ErrLost) {
		t.lost++
	}
	if t.lost > retryLimit || w.Several() && time.Since(t.began) > w.Wait || !w.Several() && t.count > retryLimit {
		return false, err
	}
	switch {
	case failure.SQLState(err) == "25006":
		again := w.Demoted(ctx, t.turns) && p.admit(ctx, shard) == nil
		if again {
			p.resent.Add(1)
		}
		return again, err
	case moved && failure.NoConn(err):
		return true, nil
	case !p.mayRepeat(repeats, err):
		return false, err
	case w.Several() && !moved:
		w.Confirm(ctx)
	}
	if t.count > retryLimit { // the host answers, and yet
		pause(ctx, retryPause)
	}
	switch down := p.admit(ctx, shard); {
	case down == nil, Retired(down): // it goes to the host that the map names now
		if !failure.NoConn(err) {
			p.resent.Add(1)
		}
		return true, nil
	case ctx.Err() != nil:
		return false, err
	default:
		return false, p.Failed(down)
	}
}

// mayRepeat reports whether a request that failed may be repeated.
func (p *Pool) mayRepeat(repeats bool, err error) bool {
	switch {
	case errors.Is(err, failure.ErrLost):
		return repeats
	case errors.Is(err, failure.ErrHostDown):
		return p.primary.Several()
	case failure.NoConn(err):
		code := failure.SQLState(err)
		return p.primary.Several() && (code == "" || strings.HasPrefix(code, "57P"))
	}
	return failure.Unsent(err) || failure.EndedIdle(err)
}

// withDemoted says in an error whether it comes from a server that no longer takes writes.
func (p *Pool) withDemoted(err error) error {
	var shard *shards.ShardError
	if failure.SQLState(err) != "25006" || !p.primary.ReadOnly() || !errors.As(err, &shard) {
		return err
	}
	said := *shard
	said.Err = demotedError{shard.Err}
	return &said
}

// Retry reports whether to repeat the request, see [Pool.retry].
func (r *Request) Retry(ctx context.Context, t *Attempts, err error) (bool, error) {
	if err == nil {
		return false, nil
	}
	if errors.Is(err, ErrApart) {
		r.awaitArguments()
		t.apart = r
		r.shard.pool.resent.Add(1)
		t.record(r, true, err)
		return true, nil
	}
	if r.repeats() && failure.SQLState(err) == "25006" && ctx.Err() == nil { // it writes, or the server takes no writes: sent as a write, it shows which
		r.text.Writes()
		t.record(r, true, err)
		return true, nil
	}
	again, err := r.shard.pool.retry(ctx, r.shard, t, r.repeats(), r.orMoved(ctx, err))
	if err != nil {
		err = r.shard.pool.withDemoted(err)
	}
	t.record(r, again, err)
	return again, err
}

// repeats reports whether the request may run more than once.
func (r *Request) repeats() bool { return r.reads && r.text.Repeats() }

// RetryLease is [Request.Retry] for what is sent on a lane that the caller was given.
func (r *Request) RetryLease(ctx context.Context, t *Attempts, repeats bool, err error) (bool, error) {
	again, err := r.shard.pool.retry(ctx, r.shard, t, repeats, err)
	t.record(r, again, err)
	return again, err
}

// pause waits, and returns false if ctx ends first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
