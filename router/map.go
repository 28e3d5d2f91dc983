package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

// MapState says which map the router uses, and whether it receives newer ones.
func (r *Router) MapState() MapState {
	r.mu.Lock()
	state, unheard := r.state, r.unheard
	r.mu.Unlock()
	if source, tells := r.maps.(staler); tells {
		unheard.at, unheard.err = source.Stale()
	}
	if unheard.err != nil {
		state.Err, state.ErrAt = unheard.err, unheard.at
	}
	return state
}

// SetMap makes the router use another map. What has begun ends on the host where it began: a statement, rows, a
// transaction. What begins later goes to the shard's host in the new map, also on an older [Shard] handle. A host that is
// in both maps, under the same name and with the same DSN, keeps its connections. The connections to a host that is not in
// the new map are closed once nobody uses them.
//
// SetMap does not connect. It returns a [shards.ChangeError] for a map that must not replace the present one, and a
// [shards.HostError] for a new host whose DSN or pool is wrong. After an error the router uses the map it had.
//
// SetMap calls Config.Pool and logs with no lock held: both may call the router, even SetMap. If another SetMap ends
// first, this one starts again from its map.
func (r *Router) SetMap(m *shards.Map) error { return r.setMap(m, false) }

// setMap is [Router.SetMap]. movesKeys allows a map in which keys have other shards.
func (r *Router) setMap(m *shards.Map, movesKeys bool) error {
	opened := &openedHosts{open: r.open}
	var used []*host
	defer func() { opened.closeUnused(r.life, used) }()
	for {
		before := r.now.Load()
		switch {
		case r.closed.Load():
			return errClosed
		case m == before.shards:
			return nil
		}
		if err := shards.CheckChange(before.shards, m); err != nil {
			var change *shards.ChangeError
			if !movesKeys || !errors.As(err, &change) || !change.MovesKeys {
				return err
			}
		}
		next, err := before.turnTo(m, opened.host)
		if err != nil {
			return err
		}
		if r.replace(before, next) {
			used = next.hosts
			r.log.Info("map changed", slog.String("cluster", m.Config().Cluster), slog.Int("from", before.shards.Version()), slog.Int("to", m.Version()))
			return nil
		}
	}
}

// replace makes a snapshot the router's, in place of the one that it was made from. It returns false if the router has
// another one by now, or is closed.
func (r *Router) replace(before, next *snapshot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() || r.now.Load() != before {
		return false
	}
	if next.shards.Allocates() && r.directory == nil {
		r.directory = r.newDirectory()
	}
	r.now.Store(next)
	for _, h := range next.settle(before) {
		r.ending.Go(func() { h.close(r.life, conns.ErrRetired) })
	}
	r.state, r.unheard = MapState{Version: next.shards.Version(), Since: time.Now(), Swaps: r.state.Swaps + 1}, trouble{}
	return true
}

// follow goes over to each map that the source yields, until ctx ends.
func (r *Router) follow(ctx context.Context, source Maps) {
	for m, err := range source.Watch(ctx, r.Map().Version()) {
		refused := err == nil
		if refused {
			err = r.setMap(m, true) // that keys move was decided where the map was changed
		}
		if err == nil {
			select {
			case r.told <- struct{}{}:
			default:
			}
		} else if ctx.Err() == nil {
			r.mapTrouble(err, refused)
		}
	}
}

// mapTrouble notes why the router does not go by the newest map: it was refused, or the source has none.
func (r *Router) mapTrouble(err error, refused bool) {
	r.mu.Lock()
	before, version := r.unheard.err, r.state.Version
	if before == nil {
		before = r.state.Err
	}
	if refused {
		r.state.Err, r.state.ErrAt, r.unheard = err, time.Now(), trouble{}
	} else {
		r.unheard = trouble{err, time.Now()}
	}
	r.mu.Unlock()
	if before == nil || before.Error() != err.Error() { // not for each attempt
		r.log.Warn("trouble with newer maps", slog.Int("version", version), slog.Any("error", err))
	}
}
