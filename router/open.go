package router

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"
)

// New checks the DSN of every host and makes the pools. It does not connect: the first statement on a host and
// [Router.Ping] do. The pools' hooks get the values of ctx, but not its end.
//
// With Config.Maps, New first loads the map. ctx governs the load.
//
// New returns the error of Maps, a [shards.HostError] without the DSN for a host whose DSN or pool is wrong, or a
// [shards.FieldError] for any other error in the Config. After an error nothing is left open.
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
		closeLimit: closeLimit, log: cfg.logger(), tracers: slices.Clone(cfg.Tracers), maps: cfg.Maps, told: make(chan struct{}, 1), stop: func() {},
	}
	r.life, r.endLife = context.WithCancel(ctx)
	maps := &reload{router: r}
	r.open = func(place shards.Host) (*host, error) {
		return openHost(ctx, place, cfg, maps.awaitMove, nil)
	}
	r.newDirectory = func() *directory.Directory { return newDirectory(r, cfg) }
	none, opened := &snapshot{}, &openedHosts{open: r.open}
	first, err := none.turnTo(m, opened.host)
	if err != nil {
		opened.closeUnused(ctx, nil)
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

// closeLimit is how long Close waits for connections in use.
const closeLimit = 10 * time.Second

// Close closes all connections. It waits until every connection in use is released: rows closed, transactions ended. After
// 10 s it closes the remaining connections, even to a server that does not answer, and returns within another 5 s. Later
// calls fail.
//
// Config.Pool, hooks, tracers and loggers must not call Close: it waits for the goroutines that call them.
func (r *Router) Close() {
	r.stop()
	r.mu.Lock()
	r.closed.Store(true)
	r.mu.Unlock()
	if r.directory != nil {
		r.directory.Close(errClosed)
	}
	defer time.AfterFunc(r.closeLimit, r.endLife).Stop()
	closeAll(r.life, r.now.Load().hosts)
	r.ending.Wait()
	r.endLife()
}
