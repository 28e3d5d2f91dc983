package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// againLimit is how often a call is made again on a host with one address, and on any that has lost its connections.
const againLimit = 3

// tries are what became of a call so far.
type tries struct {
	began time.Time // zero before the first failure
	count int
	lost  int    // how many of them with a connection that it was sent on
	turns uint64 // of the host's watch when the call was made

	asked time.Time // when the service asked for it, by the first operation; zero without tracers
	sent  int       // how often it was sent
}

// tell has a call's operation know of those before it.
func (t *tries) tell(c *call) {
	switch {
	case c.op == nil:
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
	case c.op.Together > 0:
		t.asked, t.sent = c.op.Began, c.op.Resent+1
	default:
		t.asked, t.sent = c.op.Began, c.op.Resent
	}
}

// tryOn notes that a call is about to be made at a home.
func (t *tries) tryOn(h *home) { t.turns = h.host.watch.turns.Load() }

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
	w, moved := h.watch, home.next.Load() != nil
	if t.began.IsZero() {
		t.began = time.Now()
	}
	t.count++
	if errors.Is(err, ErrLost) {
		t.lost++
	}
	if t.lost > againLimit || w.several && time.Since(t.began) > w.patience || !w.several && t.count > againLimit {
		return false, err
	}
	switch {
	case sqlState(err) == "25006":
		again := w.demoted(ctx, t.turns) && w.admit(ctx, home) == nil
		if again {
			h.resent.Add(1)
		}
		return again, err
	case moved && neverSent(err):
		return true, nil
	case !w.mayRepeat(repeats, err):
		return false, err
	case w.several && !moved:
		w.confirm(ctx)
	}
	if t.count > againLimit { // the host answers, and yet
		pause(ctx, downPace)
	}
	switch down := w.admit(ctx, home); {
	case down == nil, retired(down): // it goes to the host that the map names now
		if !neverSent(err) {
			h.resent.Add(1)
		}
		return true, nil
	case ctx.Err() != nil:
		return false, err
	default:
		return false, h.failed(down)
	}
}

// mayRepeat tells whether a call that failed may be made again.
func (w *watch) mayRepeat(repeats bool, err error) bool {
	switch {
	case errors.Is(err, ErrLost):
		return repeats
	case errors.Is(err, ErrHostDown):
		return w.several
	case neverSent(err):
		code := sqlState(err)
		return w.several && (code == "" || strings.HasPrefix(code, "57P"))
	}
	return unsent(err) || endedIdle(err)
}

// unsent tells whether pgx says that it has sent nothing.
func unsent(err error) bool { return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) }

// demotedError says that a server refused to write because it is not the primary any more.
type demotedError struct{ error }

func (e demotedError) Error() string {
	return fmt.Sprintf("the server no longer takes writes: %v", e.error)
}
func (e demotedError) Unwrap() error     { return e.error }
func (e demotedError) SafeToRetry() bool { return true }

// demoted tells whether a transaction that was refused since it wanted to write has met a server that was demoted. It
// waits for another primary if the server says that it takes no writes, until it has said so for Failover.Wait.
func (w *watch) demoted(ctx context.Context, turns uint64) bool {
	if !w.several {
		return false
	}
	w.confirm(ctx)
	for {
		w.mu.Lock()
		readOnly, left := false, time.Duration(0)
		if now := w.primary; now != nil {
			readOnly, left = now.last.role.readOnly, time.Until(now.last.since.Add(w.patience))
		}
		closed, heard := w.closed, w.heard
		w.mu.Unlock()
		switch {
		case w.turns.Load() != turns:
			return true
		case !readOnly || closed != nil || left <= 0:
			return false
		}
		select {
		case <-heard:
		case <-time.After(left):
		case <-ctx.Done():
			return false
		}
	}
}

// sayDemoted tells of an error, for which a call is not made again, whether it comes from a server that takes no writes.
func (w *watch) sayDemoted(err error) error {
	if sqlState(err) != "25006" || !w.several {
		return err
	}
	w.mu.Lock()
	writes := w.primary != nil && !w.primary.last.role.readOnly
	w.mu.Unlock()
	var shard *shards.ShardError
	if writes || !errors.As(err, &shard) {
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
	again, err := c.home.host.again(ctx, c.home, t, c.text != nil && c.text.repeats, err)
	if err != nil {
		err = c.home.host.watch.sayDemoted(err)
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
