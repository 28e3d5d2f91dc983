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

// againLimit is how often a call is made again on a host with one address, and on any that has lost its connections.
const againLimit = 3

// againPause is how long a call waits that has failed more often than that.
const againPause = 100 * time.Millisecond

// Attempts are what became of a call so far.
type Attempts struct {
	began time.Time // zero before the first failure
	count int
	lost  int    // how many of them with a connection that it was sent on
	turns uint64 // of the host's watch when the call was made
	apart bool   // the next is to have a connection of its own

	asked time.Time // when the service asked for it, by the first operation; zero without tracers
	sent  int       // how often it was sent

	op *tracers.Operation // that goes on with the next
}

// tell has a call and its operation know of those before it.
func (t *Attempts) tell(c *Request) {
	c.lease, c.resent = c.lease || t.apart, t.apart
	switch {
	case c.op == nil:
	case t.op != nil:
		c.op, c.ctx, t.op = t.op, t.op, nil
	case t.asked.IsZero():
		t.asked = c.op.Began
	default:
		c.op.Began, c.op.Resent = t.asked, t.sent
	}
}

// told notes what has become of a call's operation. Tracers hear of one that is given up unsent.
func (t *Attempts) told(c *Request, again bool, err error) {
	switch {
	case c.op == nil:
	case !again:
		_ = c.Unsent(err)
	case c.op.GoesOn():
		t.op = c.op
	case c.op.Together > 0:
		t.asked, t.sent = c.op.Began, c.op.Resent+1
	default:
		t.asked, t.sent = c.op.Began, c.op.Resent
	}
}

// Acquire makes a call for an operation on a shard, and returns it once it was given a line. It has the context of the
// operation.
func (t *Attempts) Acquire(ctx context.Context, at *Shard, kind operation.Kind, summary string) (*Request, error) {
	t.turns = at.conns.primary.Turns()
	c := at.conns.leaseFor(ctx, at, kind, summary)
	t.tell(c)
	return c, at.conns.obtain(c)
}

// Ask makes a call of a single statement, or with whole of what may be several, and returns it once it was given its answer
// or a line. With server it goes to no other server of a replica.
func (t *Attempts) Ask(ctx context.Context, at *Shard, server, sql string, args []any, whole bool) (*Request, error) {
	t.turns = at.conns.primary.Turns()
	c := at.conns.callFor(ctx, at, sql, args, whole)
	c.server = server
	t.tell(c)
	return c, c.ask()
}

// again tells whether to make a call again that failed, and returns when there is a reason to think that it will go
// better. repeats says that the call may run twice: it changes nothing. If it is not to be made again, the error is what
// its caller gets: err, or that the host is down for a call of which nothing has taken effect.
//
// What was not sent may be made again, and so may what changes nothing and was lost with its connection. On a host with
// several addresses that is until Failover.Wait is over; on one with a single address it is tried a few times at once,
// and not at all if there is no connection to be had. What is lost again and again may be what ends its server.
func (ls *Pool) again(ctx context.Context, shard *Shard, t *Attempts, repeats bool, err error) (bool, error) {
	if err == nil || ctx.Err() != nil || Retired(err) {
		return false, err
	}
	if errors.Is(err, failure.ErrMoved) {
		again := ls.moves(ctx, shard)
		if again {
			ls.resent.Add(1)
		}
		return again, err
	}
	w, moved := ls.primary, shard.gone.Load()
	if t.began.IsZero() {
		t.began = time.Now()
	}
	t.count++
	if errors.Is(err, failure.ErrLost) {
		t.lost++
	}
	if t.lost > againLimit || w.Several() && time.Since(t.began) > w.Wait || !w.Several() && t.count > againLimit {
		return false, err
	}
	switch {
	case failure.SQLState(err) == "25006":
		again := w.Demoted(ctx, t.turns) && ls.admit(ctx, shard) == nil
		if again {
			ls.resent.Add(1)
		}
		return again, err
	case moved && failure.NoConn(err):
		return true, nil
	case !ls.mayRepeat(repeats, err):
		return false, err
	case w.Several() && !moved:
		w.Confirm(ctx)
	}
	if t.count > againLimit { // the host answers, and yet
		pause(ctx, againPause)
	}
	switch down := ls.admit(ctx, shard); {
	case down == nil, Retired(down): // it goes to the host that the map names now
		if !failure.NoConn(err) {
			ls.resent.Add(1)
		}
		return true, nil
	case ctx.Err() != nil:
		return false, err
	default:
		return false, ls.Failed(down)
	}
}

// moves waits for a map in which a shard that is not on this host has another one, and tells whether there is one.
func (ls *Pool) moves(ctx context.Context, shard *Shard) bool {
	if ls.awaitMove == nil {
		return shard.Gone()
	}
	return ls.awaitMove(ctx, shard)
}

// mayRepeat tells whether a call that failed may be made again.
func (ls *Pool) mayRepeat(repeats bool, err error) bool {
	switch {
	case errors.Is(err, failure.ErrLost):
		return repeats
	case errors.Is(err, failure.ErrHostDown):
		return ls.primary.Several()
	case failure.NoConn(err):
		code := failure.SQLState(err)
		return ls.primary.Several() && (code == "" || strings.HasPrefix(code, "57P"))
	}
	return failure.Unsent(err) || failure.EndedIdle(err)
}

// sayDemoted tells of an error, for which a call is not made again, whether it comes from a server that takes no writes.
func (ls *Pool) sayDemoted(err error) error {
	var shard *shards.ShardError
	if failure.SQLState(err) != "25006" || !ls.primary.ReadOnly() || !errors.As(err, &shard) {
		return err
	}
	said := *shard
	said.Err = demotedError{shard.Err}
	return &said
}

// Retry tells whether to make the call again, see [Pool.again].
func (c *Request) Retry(ctx context.Context, t *Attempts, err error) (bool, error) {
	if err == nil {
		return false, nil
	}
	if errors.Is(err, ErrApart) {
		c.awaitArguments()
		t.apart = true
		c.shard.conns.resent.Add(1)
		t.told(c, true, err)
		return true, nil
	}
	if c.reads && failure.SQLState(err) == "25006" && ctx.Err() == nil { // it writes, or the server takes no writes: as a write it is told
		c.text.Writes()
		t.told(c, true, err)
		return true, nil
	}
	again, err := c.shard.conns.again(ctx, c.shard, t, c.reads, err)
	if err != nil {
		err = c.shard.conns.sayDemoted(err)
	}
	t.told(c, again, err)
	return again, err
}

// RetryLease is [Request.Retry] for what is sent on a line that the caller was given.
func (c *Request) RetryLease(ctx context.Context, t *Attempts, repeats bool, err error) (bool, error) {
	again, err := c.shard.conns.again(ctx, c.shard, t, repeats, err)
	t.told(c, again, err)
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
