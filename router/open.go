package router

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"
)

// New checks the DSN of every host and makes the pools. It does not connect: the first statement on a host does, and
// [Router.Ping] does. The values of ctx are passed on to the hooks of the pools; its end means nothing to them.
//
// With Config.Maps it loads the map first, which ctx governs.
//
// The error is what Maps says, a [shards.HostError] for a host whose DSN or pool is wrong, without the DSN, and a
// [shards.FieldError] for a Config that is wrong otherwise. After an error nothing is left open.
func New(ctx context.Context, cfg Config) (*Router, error) {
	switch {
	case cfg.Map == nil && cfg.Maps == nil:
		return nil, &shards.FieldError{Field: "Map", Found: "nil", Expected: "a map of the shards, or Maps"}
	case cfg.Map != nil && cfg.Maps != nil:
		return nil, &shards.FieldError{Field: "Map", Found: "both Map and Maps", Expected: "one of them"}
	case cfg.Statements < 0:
		return nil, &shards.FieldError{Field: "Statements", Found: "less than 0", Expected: "how many statements a connection keeps, or 0 for 1024"}
	case cfg.DirectoryCache < 0:
		return nil, &shards.FieldError{Field: "DirectoryCache", Found: "less than 0", Expected: "how many entries are kept, or 0 for 100,000"}
	case cfg.DirectoryMaxAge < 0:
		return nil, &shards.FieldError{Field: "DirectoryMaxAge", Found: "less than 0", Expected: "how long an entry is used, or 0 for a minute"}
	case cfg.Statements == 0:
		cfg.Statements = defaultStatements
	}
	var err error
	if cfg.Failover, err = cfg.Failover.withDefaults(); err != nil {
		return nil, err
	}
	m := cfg.Map
	if cfg.Maps != nil {
		if m, err = cfg.Maps.Load(ctx); err != nil {
			return nil, fmt.Errorf("map: %w", err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	r := &Router{
		log: cfg.logger(), tracers: slices.Clone(cfg.Tracers), maps: cfg.Maps, stop: func() {},
	}
	r.life, r.endLife = context.WithCancel(ctx)
	maps := &reload{router: r}
	r.open = func(place shards.Host) (*host, error) {
		return openHost(ctx, place, cfg, maps.awaitMove, nil)
	}
	r.newDirectory = func() *directory.Directory { return newDirectory(r, cfg) }
	none := &snapshot{}
	first, err := none.turnTo(m, r.open)
	if err != nil {
		return nil, err
	}
	if m.Allocates() {
		r.directory = r.newDirectory()
	}
	r.now.Store(first)
	first.settle(none)
	r.state = MapState{Version: m.Version(), Since: time.Now()}
	if cfg.Maps != nil {
		ctx, stop := context.WithCancel(ctx)
		r.stop = stop
		r.ending.Go(func() { r.follow(ctx, cfg.Maps) })
	}
	return r, nil
}

// closeLimit is how long Close waits.
const closeLimit = 10 * time.Second

// Close closes all connections. It waits until every connection that is in use has been given back: rows closed,
// transactions ended. After 10 s it closes the others, also those to a server that is silent, and returns within 5 s.
// Calls made afterwards fail.
func (r *Router) Close() {
	r.stop()
	r.turning.Lock()
	r.closed = true
	r.turning.Unlock()
	if r.directory != nil {
		r.directory.Close(errClosed)
	}
	defer time.AfterFunc(closeLimit, r.endLife).Stop()
	closeAll(r.life, r.now.Load().hosts)
	r.ending.Wait()
	r.endLife()
}
