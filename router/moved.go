package router

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

const (
	movedLimit    = 3 * time.Second        // how long the source of maps may take to answer
	movedLook     = 2 * time.Millisecond   // before the second look; each further one waits twice as long as the one before
	movedLongest  = 50 * time.Millisecond  // between two looks
	movedRest     = time.Second            // after which looks are made as if they were the first
	movedPatience = 250 * time.Millisecond // of a call, before it sees whether the shard is back
)

// reload asks the source of maps for the newest one, once for all calls that want it at the same time. A move changes the map some
// milliseconds after callers meet its fence, or never if it is aborted: the first looks are made soon after another.
type reload struct {
	router *Router
	flight singleflight.Group

	// Only one flight at a time uses what follows.
	pause time.Duration // before the next look
	last  time.Time     // look
}

// newest has the router go over to the newest map of its source. It returns when that is done, or at the end of ctx.
func (r *reload) newest(ctx context.Context) {
	done := r.flight.DoChan("", func() (any, error) {
		r.wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), movedLimit)
		defer cancel()
		m, err := r.router.maps.Load(ctx)
		if err == nil && m.Version() > r.router.Map().Version() {
			err = r.router.setMap(m, true)
		}
		if err != nil {
			r.router.mapTrouble(err, false)
		}
		r.last = time.Now()
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// wait returns when it is time for the next look.
func (r *reload) wait() {
	if time.Since(r.last) > movedRest {
		r.pause = 0
	}
	time.Sleep(r.pause)
	r.pause = min(max(2*r.pause, movedLook), movedLongest)
}

// awaitMove waits for a map in which a shard that is not on this host has another one, and tells whether to make the call
// again: there is one, or it has waited long enough to see whether the shard is back.
func (r *reload) awaitMove(ctx context.Context, at *conns.Shard) bool {
	if r.router.maps == nil {
		return at.Gone()
	}
	for began := time.Now(); time.Since(began) < movedPatience; {
		r.newest(ctx)
		if at.Gone() {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}
