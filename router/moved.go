package router

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

const (
	loadLimit    = 3 * time.Second        // time limit of one load of the map
	loadPause    = 2 * time.Millisecond   // before the second load; a fourth longer before each further one
	loadPauseMax = 50 * time.Millisecond  // longest pause between two loads
	loadReset    = time.Second            // without a load for this long, the pause starts again at 0
	moveWait     = 250 * time.Millisecond // how long a call waits for a newer map before it retries on the old host
)

// reload loads the newest map from its source, once for all concurrent calls. A move changes the map some milliseconds after
// calls meet its fence, or never if the move is aborted. So the first loads follow each other quickly.
type reload struct {
	router *Router
	flight singleflight.Group

	// Only the one flight under way uses the fields below.
	pause time.Duration // before the next load
	last  time.Time     // when the last load ended
}

// newest makes the router use the newest map of its source. It returns when that is done or when ctx ends.
func (r *reload) newest(ctx context.Context) {
	done := r.flight.DoChan("", func() (any, error) {
		if r.wait() {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
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

// wait pauses before the next load. It reports whether the map has changed in the meantime, so that there is no need of it.
func (r *reload) wait() (changed bool) {
	if time.Since(r.last) > loadReset {
		r.pause = 0
	}
	select {
	case <-time.After(r.pause):
	case <-r.router.told:
		changed = true
	}
	r.pause = min(max(r.pause+r.pause/4, loadPause), loadPauseMax)
	return changed
}

// awaitMove waits for a newer map that has the shard on another host. It reports whether to retry the call: there is such a
// map, or moveWait has passed and the shard may be back on its host. It returns false if ctx ends.
func (r *reload) awaitMove(ctx context.Context, at *conns.Shard) bool {
	if r.router.maps == nil {
		return at.Gone()
	}
	for began := time.Now(); time.Since(began) < moveWait; {
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
