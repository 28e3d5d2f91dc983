package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// ErrMoved says that a shard is not on the host where the router's map has it, and that no newer map was available within 3
// seconds. Nothing of the statement has run. Its [shards.ShardError] names the shard and the host.
var ErrMoved = failure.ErrMoved

// movedLimit is how long a call waits for a map that says where its shard is, movedPause how long between two looks, and
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

// awaitMove waits for a map in which a shard that is not on this host has another one, and tells whether to send the call
// again: there is one, or it is time to see whether the shard is back, as it is after a move that was aborted.
func (h *host) awaitMove(ctx context.Context, home *home, t *tries) bool {
	if h.reload == nil || h.reload.router.maps == nil {
		return home.next.Load() != nil
	}
	if t.missed.IsZero() {
		t.missed = time.Now()
	}
	for range movedLooks {
		if home.next.Load() != nil {
			return true
		}
		if time.Since(t.missed) > movedLimit {
			return false
		}
		h.reload.newest(ctx)
		if home.next.Load() == nil && !pause(ctx, movedPause) {
			return false
		}
	}
	return true
}

// orMoved returns [ErrMoved] in place of the error of a statement whose shard is not there any more: the error has undone all
// that the statement did. An entry by itself tells. Of several statements sent as one text some may have taken effect.
func (c *call) orMoved(ctx context.Context, err error) error {
	if !session.MayHaveMoved(err) || ctx.Err() != nil {
		return err
	}
	scanner := sqltext.Scanner{Text: c.sql}
	if found, _ := scanner.Split(); len(found) > 1 {
		return err
	}
	if c.home.next.Load() != nil {
		return c.home.Failed(fmt.Errorf("%w: %w", ErrMoved, err))
	}
	lease, leaseErr := c.home.host.acquire(ctx, c.home)
	if leaseErr != nil {
		return err
	}
	defer lease.Release()
	if checkErr := lease.line.session.CheckEntry(ctx, &c.home.Shard); errors.Is(checkErr, ErrMoved) {
		return checkErr
	}
	return err
}
