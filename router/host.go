package router

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// host is a host of the map with its pool.
type host struct {
	*session.Host
	opened shards.Host // as it was when the host was opened

	login    *connect.Login
	plain    *pgxpool.Config // of the pool, before the router changes it: see [Shard.PoolConfig]
	lines    *lines
	watch    *primary.Watch
	reload   *reload      // of the map; nil if it is a replica
	alone    bool         // every statement is sent by itself
	shares   bool         // calls may share a connection at all
	replicas *replicas    // nil if it has none
	replica  *replicaHost // nil unless it is one

	resent, retried, exhausted, lost atomic.Uint64 // see HostStats

	// Of the pool's config.
	lifetime, jitter time.Duration
	prepareConn      func(context.Context, *pgx.Conn) (bool, error)
	afterRelease     func(*pgx.Conn) bool

	knownLimit int // the shards of a connection past which it is replaced; guarded by lines.mu
}

// openHost opens a host of the map, or with replica not nil that replica as a host of its own: nothing that is about
// primaries may be asked of it.
func openHost(ctx context.Context, place shards.Host, cfg Config, replica *replicaHost) (*host, error) {
	login, config, err := connect.ForPool(place.WithCredentials(cfg.Credentials))
	if err != nil {
		return nil, err
	}
	if cfg.Pool != nil {
		if err := cfg.Pool(place, config); err != nil {
			return nil, err
		}
	}
	plain := config.Copy()
	login.Attend(plain)
	var all []pgx.QueryTracer
	if own := config.ConnConfig.Tracer; own != nil {
		all = append(all, own)
	}
	all = append(all, cfg.Tracers...)
	if cfg.Logger != nil && cfg.SlowStatement > 0 {
		all = append(all, tracers.SlowLog(cfg.Logger, cfg.SlowStatement))
	}
	h := &host{opened: place, login: login, plain: plain, alone: cfg.NoGroups, replica: replica}
	h.Host = &session.Host{
		Name:         place.Name,
		Mode:         config.ConnConfig.DefaultQueryExecMode,
		Statements:   cfg.Statements,
		Trace:        tracers.Of(all),
		Log:          cfg.logger(),
		Texts:        texts.NewCache(),
		AfterConnect: config.AfterConnect,
		Refused:      func() { h.watch.Refused() },
	}
	if replica != nil {
		h.ServerOf = replica.server
	}
	if err := session.CheckMode(h.Mode); err != nil {
		return nil, fmt.Errorf("default_query_exec_mode: %w", err)
	}
	config.ConnConfig.Tracer = h.Trace.Tracer()
	// What pgx sends by itself it describes each time: CopyFrom would else encode for columns as they were once.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	if h.Mode == pgx.QueryExecModeExec {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	h.Place.Store(&place)
	h.takeHooks(config)
	h.knowPooler(config)
	login.Attend(config)
	h.watch = newWatch(h, config, cfg.Failover)
	opened := make(chan struct{}) // a pool with a least number of connections makes them as soon as it is there
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		<-opened
		return before(ctx, c)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	h.lines = newLines(h, pool)
	h.shares = h.prepareConn == nil && h.afterRelease == nil
	close(opened)
	h.Log.Info("host opened", slog.String("host", h.Name), slog.String("address", h.opened.Address()), slog.Int("connections", len(h.lines.all)))
	if h.replicas, err = newReplicas(ctx, h, cfg); err != nil {
		h.watch.Retire(err)
		pool.Close()
		h.watch.Close()
		return nil, err
	}
	return h, nil
}

// takeHooks takes over what a pool does with each use of a connection: the pool itself gives a connection out once.
func (h *host) takeHooks(config *pgxpool.Config) {
	h.lifetime, h.jitter = config.MaxConnLifetime, config.MaxConnLifetimeJitter
	if h.lifetime <= 0 {
		h.lifetime = forever
	}
	h.afterRelease = config.AfterRelease
	h.prepareConn = config.PrepareConn
	if before := config.BeforeAcquire; before != nil && h.prepareConn == nil { //nolint:staticcheck // deprecated, and still in use
		h.prepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) { return before(ctx, conn), nil }
	}
	config.PrepareConn, config.AfterRelease = nil, nil
	config.BeforeAcquire = nil //nolint:staticcheck // deprecated, and still in use
}

// knowPooler has new connections prepare nothing once it is known that there is a pooler.
func (h *host) knowPooler(config *pgxpool.Config) {
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if h.Pooled.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		if before == nil {
			return nil
		}
		return before(ctx, c)
	}
}

// leastRoom is for how many shards there is room on a connection at least: so many cost no more than one.
const leastRoom = 64

// knownMore is for how many times the shards that it is meant for a connection may have worked.
const knownMore = 8

const forever = 100 * 365 * 24 * time.Hour

// expect says how many shards the host has. A connection that has worked for many more than it is meant for is replaced:
// what Postgres knows of a schema stays in the session's memory.
func (h *host) expect(shards int) {
	if h.replicas != nil {
		h.replicas.shards.Store(int64(shards))
	}
	h.lines.mu.Lock()
	defer h.lines.mu.Unlock()
	conns := len(h.lines.all)
	share := (shards + conns - 1) / conns
	h.lines.room = max(leastRoom, share)
	h.lines.spare = h.lines.room - share
	h.knownLimit = knownMore * h.lines.room
}
