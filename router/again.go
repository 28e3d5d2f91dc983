package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
)

// againLimit is how often a call is made again on a host with one address, and on any that has lost its connections.
const againLimit = 3

// againPause is how long a call waits that has failed more often than that.
const againPause = 100 * time.Millisecond

// tries are what became of a call so far.
type tries struct {
	began  time.Time // zero before the first failure
	count  int
	lost   int       // how many of them with a connection that it was sent on
	turns  uint64    // of the host's watch when the call was made
	missed time.Time // when its shard was first not there; zero if it always was
	apart  bool      // the next is to have a connection of its own

	asked time.Time // when the service asked for it, by the first operation; zero without tracers
	sent  int       // how often it was sent

	op *tracers.Operation // that goes on with the next
}

// errApart says that a read is to be asked for again by its caller, on a connection of its own: its group was late, or failed
// because of another, or its answer is long, or the connection was lost before it was sent.
var errApart = errors.New("to be asked for again, apart from others")

// tell has a call and its operation know of those before it.
func (t *tries) tell(c *call) {
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
func (t *tries) told(c *call, again bool, err error) {
	switch {
	case c.op == nil:
	case !again:
		_ = c.unsent(err)
	case c.op.GoesOn():
		t.op = c.op
	case c.op.Together > 0:
		t.asked, t.sent = c.op.Began, c.op.Resent+1
	default:
		t.asked, t.sent = c.op.Began, c.op.Resent
	}
}

// tryOn notes that a call is about to be made at a home.
func (t *tries) tryOn(h *home) { t.turns = h.host.watch.Turns() }

// again tells whether to make a call again that failed, and returns when there is a reason to think that it will go
// better. repeats says that the call may run twice: it changes nothing. If it is not to be made again, the error is what
// its caller gets: err, or that the host is down for a call of which nothing has taken effect.
//
// What was not sent may be made again, and so may what changes nothing and was lost with its connection. On a host with
// several addresses that is until Failover.Wait is over; on one with a single address it is tried a few times at once,
// and not at all if there is no connection to be had. What is lost again and again may be what ends its server.
func (h *host) again(ctx context.Context, home *home, t *tries, repeats bool, err error) (bool, error) {
	if err == nil || ctx.Err() != nil || retired(err) {
		return false, err
	}
	if errors.Is(err, ErrMoved) {
		again := h.awaitMove(ctx, home, t)
		if again {
			h.resent.Add(1)
		}
		return again, err
	}
	w, moved := h.watch, home.next.Load() != nil
	if t.began.IsZero() {
		t.began = time.Now()
	}
	t.count++
	if errors.Is(err, ErrLost) {
		t.lost++
	}
	if t.lost > againLimit || w.Several() && time.Since(t.began) > w.Wait || !w.Several() && t.count > againLimit {
		return false, err
	}
	switch {
	case failure.SQLState(err) == "25006":
		again := w.Demoted(ctx, t.turns) && h.admit(ctx, home) == nil
		if again {
			h.resent.Add(1)
		}
		return again, err
	case moved && failure.NoConn(err):
		return true, nil
	case !h.mayRepeat(repeats, err):
		return false, err
	case w.Several() && !moved:
		w.Confirm(ctx)
	}
	if t.count > againLimit { // the host answers, and yet
		pause(ctx, againPause)
	}
	switch down := h.admit(ctx, home); {
	case down == nil, retired(down): // it goes to the host that the map names now
		if !failure.NoConn(err) {
			h.resent.Add(1)
		}
		return true, nil
	case ctx.Err() != nil:
		return false, err
	default:
		return false, h.Failed(down)
	}
}

// mayRepeat tells whether a call that failed may be made again.
func (h *host) mayRepeat(repeats bool, err error) bool {
	switch {
	case errors.Is(err, ErrLost):
		return repeats
	case errors.Is(err, ErrHostDown):
		return h.watch.Several()
	case failure.NoConn(err):
		code := failure.SQLState(err)
		return h.watch.Several() && (code == "" || strings.HasPrefix(code, "57P"))
	}
	return failure.Unsent(err) || failure.EndedIdle(err)
}

// demotedError says that a server refused to write because it is not the primary any more.
type demotedError struct{ error }

func (e demotedError) Error() string {
	return fmt.Sprintf("the server no longer takes writes: %v", e.error)
}
func (e demotedError) Unwrap() error     { return e.error }
func (e demotedError) SafeToRetry() bool { return true }

// sayDemoted tells of an error, for which a call is not made again, whether it comes from a server that takes no writes.
func (h *host) sayDemoted(err error) error {
	var shard *shards.ShardError
	if failure.SQLState(err) != "25006" || !h.watch.ReadOnly() || !errors.As(err, &shard) {
		return err
	}
	said := *shard
	said.Err = demotedError{shard.Err}
	return &said
}

// again tells whether to make the call again, see [host.again].
func (c *call) again(ctx context.Context, t *tries, err error) (bool, error) {
	if err == nil {
		return false, nil
	}
	if errors.Is(err, errApart) {
		c.awaitArguments()
		t.apart = true
		c.home.host.resent.Add(1)
		t.told(c, true, err)
		return true, nil
	}
	if c.reads && failure.SQLState(err) == "25006" && ctx.Err() == nil { // it writes, or the server takes no writes: as a write it is told
		c.text.Writes()
		t.told(c, true, err)
		return true, nil
	}
	again, err := c.home.host.again(ctx, c.home, t, c.reads, c.orMoved(ctx, err))
	if err != nil {
		err = c.home.host.sayDemoted(err)
	}
	t.told(c, again, err)
	return again, err
}

// leaseAgain is [call.again] for what is sent on a line that the caller was given.
func (c *call) leaseAgain(ctx context.Context, t *tries, repeats bool, err error) (bool, error) {
	again, err := c.home.host.again(ctx, c.home, t, repeats, err)
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
