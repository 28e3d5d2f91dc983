package router

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

// movedLimit is how long the source of maps may take to answer, movedPause how long a call waits between two looks, and
// movedLooks how many there are before it sees whether the shard is back.
const (
	movedLimit = 3 * time.Second
	movedPause = 50 * time.Millisecond
	movedLooks = 5
)

// reload asks the source of maps for the newest one, once for all calls that want it at the same time.
type reload struct {
	router *Router
	flight singleflight.Group
}

// newest has the router go over to the newest map of its source. It returns when that is done, or at the end of ctx.
func (r *reload) newest(ctx context.Context) {
	done := r.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), movedLimit)
		defer cancel()
		m, err := r.router.maps.Load(ctx)
		if err == nil && m.Version() > r.router.Map().Version() {
			err = r.router.setMap(m, true)
		}
		if err != nil {
			r.router.mapTrouble(err, false)
		}
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// awaitMove waits for a map in which a shard that is not on this host has another one, and tells whether to make the call
// again: there is one, or it has waited long enough to see whether the shard is back.
func (r *reload) awaitMove(ctx context.Context, at *conns.Shard) bool {
	if r.router.maps == nil {
		return at.Gone()
	}
	for range movedLooks {
		r.newest(ctx)
		if at.Gone() {
			return true
		}
		select {
		case <-time.After(movedPause):
		case <-ctx.Done():
			return false
		}
	}
	return true
}
