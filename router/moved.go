package router

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// ErrMoved says that a shard is not on the host where the router's map has it, and that no newer map was available within 3
// seconds. Nothing of the statement has run. Its [shards.ShardError] names the shard and the host.
var ErrMoved = failure.ErrMoved

// movedLimit is how long a call waits for a map that says where its shard is, and movedPause how long between two looks.
const (
	movedLimit = 3 * time.Second
	movedPause = 50 * time.Millisecond
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

// awaitMove waits for a map in which a shard that is not on this host has another one, and tells whether there is one.
func (h *host) awaitMove(ctx context.Context, home *home) bool {
	if h.reload == nil || h.reload.router.maps == nil {
		return home.next.Load() != nil
	}
	ctx, cancel := context.WithTimeout(ctx, movedLimit)
	defer cancel()
	for home.next.Load() == nil {
		h.reload.newest(ctx)
		if home.next.Load() == nil && !pause(ctx, movedPause) {
			return false
		}
	}
	return true
}
