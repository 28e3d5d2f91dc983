package router

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

// host is a host of the map with its connections.
type host struct {
	*conns.Pool
	opened   shards.Host     // as it was when the host was opened
	plain    *pgxpool.Config // of the pool, before the router changes it: see [Shard.PoolConfig]
	replicas *replicas       // nil if it has none

	retried, exhausted atomic.Uint64 // see HostStats
}

// openHost opens a host of the map, or with replica not nil that replica as a host of its own: nothing that is about
// primaries may be asked of it. maps is nil then.
func openHost(ctx context.Context, place shards.Host, cfg Config, maps *reload, replica *replicaHost) (*host, error) {
	login, config, err := connect.ForPool(place.WithCredentials(cfg.Credentials))
	if err != nil {
		return nil, err
	}
	if cfg.Pool != nil {
		if err := cfg.Pool(place, config); err != nil {
			return nil, err
		}
	}
	h := &host{opened: place, plain: config.Copy()}
	login.Attend(h.plain)
	made := conns.Config{
		Host: place, Pool: config, Login: login, Statements: cfg.Statements, Alone: cfg.NoGroups,
		FailAfter: cfg.Failover.FailAfter, Wait: cfg.Failover.Wait, Tracers: cfg.Tracers, Logger: cfg.logger(),
		AwaitMove: maps.awaitMove,
	}
	if cfg.Logger != nil {
		made.Slow = cfg.SlowStatement
	}
	if replica != nil {
		made.ServerOf = replica.server
	}
	if h.replicas, err = newReplicas(ctx, h, cfg); err != nil {
		return nil, err
	}
	if h.Pool, err = conns.Open(ctx, made); err != nil {
		if h.replicas != nil {
			h.replicas.close(ctx, err)
		}
		return nil, err
	}
	return h, nil
}

// expect says how many shards the host has.
func (h *host) expect(shards int) {
	if h.replicas != nil {
		h.replicas.shards.Store(int64(shards))
	}
	h.Pool.Expect(shards)
}

// close closes the connections to the host and its replicas, see [conns.Pool.Close].
func (h *host) close(ctx context.Context, why error) {
	h.Pool.Close(ctx, why)
	if h.replicas != nil {
		h.replicas.close(ctx, why)
	}
}
