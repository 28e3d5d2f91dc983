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

// SetMap has the router go by another map from now on. What is under way finishes where it began: a statement, rows,
// a transaction. Whatever is begun afterwards goes to the shard's host in the new map, also on a [Shard] from before.
// The connections to a host that is in both maps, under the same name with the same DSN, go on; those to a host that
// is not in the new one are closed when nobody uses them any more.
//
// It returns without a change the [shards.ChangeError] of a map that must not follow the present one, and the
// [shards.HostError] of a new host whose DSN or pool is wrong. It does not connect.
func (r *Router) SetMap(m *shards.Map) error { return r.setMap(m, false) }

// setMap goes over to a map. movesKeys says that keys may have another shard in it.
func (r *Router) setMap(m *shards.Map, movesKeys bool) error {
	before, err := r.turnTo(m, movesKeys)
	if err == nil && before != m {
		r.log.Info("map changed", slog.String("cluster", m.Config().Cluster), slog.Int("from", before.Version()), slog.Int("to", m.Version()))
	}
	return err
}

// turnTo returns the map before.
func (r *Router) turnTo(m *shards.Map, movesKeys bool) (*shards.Map, error) {
	r.turning.Lock()
	defer r.turning.Unlock()
	before := r.now.Load()
	switch {
	case r.closed:
		return nil, errClosed
	case m == before.shards:
		return m, nil
	}
	if err := shards.CheckChange(before.shards, m); err != nil {
		var change *shards.ChangeError
		if !movesKeys || !errors.As(err, &change) || !change.MovesKeys {
			return nil, err
		}
	}
	next, err := before.turnTo(m, r.open)
	if err != nil {
		return nil, err
	}
	if m.Allocates() && r.directory == nil {
		r.directory = r.newDirectory()
	}
	r.now.Store(next)
	for _, h := range next.settle(before) {
		r.ending.Go(func() { h.close(r.life, conns.ErrRetired) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.unheard = MapState{Version: m.Version(), Since: time.Now(), Swaps: r.state.Swaps + 1}, trouble{}
	return before.shards, nil
}

// follow goes over to each map that the source yields, until ctx ends.
func (r *Router) follow(ctx context.Context, source Maps) {
	for m, err := range source.Watch(ctx, r.Map().Version()) {
		refused := err == nil
		if refused {
			err = r.setMap(m, true) // that keys move was decided where the map was changed
		}
		if err != nil && ctx.Err() == nil {
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
