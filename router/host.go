package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// host is a host of the map with its connections.
type host struct {
	*conns.Pool
	opened   shards.Host     // the host in the map with which it was opened
	plain    *pgxpool.Config // the pool's config before the router changes it: see [Shard.PoolConfig]
	replicas *replicas       // nil if it has none

	retried, exhausted atomic.Uint64 // see HostStats
}

// awaitMove is [conns.Config.AwaitMove].
type awaitMove = func(context.Context, *conns.Shard) bool

// openHost opens a host of the map. If replica is not nil, it opens that replica: as a host without a primary, whose shards
// do not move by themselves.
func openHost(ctx context.Context, place shards.Host, cfg Config, awaitMove awaitMove, replica *replicaHost) (*host, error) {
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
		Host: place, Pool: config, Login: login, Statements: cfg.Statements, NoGroups: cfg.NoGroups,
		FailAfter: cfg.Failover.FailAfter, Wait: cfg.Failover.Wait, DownError: newDownError, Tracers: cfg.Tracers, Logger: cfg.logger(),
		AwaitMove: awaitMove,
	}
	if cfg.Logger != nil {
		made.Slow = cfg.SlowStatement
	}
	if replica != nil {
		made.ServerOf, made.TextsOf = replica.server, replica.of.primary.Pool.Texts
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

// expect sets how many shards the host has.
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

// ErrNoReplica says that no replica of the host qualified for a reader with ReplicaOnly.
var ErrNoReplica = replica.ErrNone

// errReplicaLeft says that the host of a replica has left the map. The reader looks for the shard on another host.
var errReplicaLeft = errors.New("the host of the replica is no longer in use")

// replicas are the replicas of a host.
type replicas struct {
	*replica.Set
	primary *host
	cfg     Config
	base    context.Context // for their pools
	all     []*replicaHost

	shards   atomic.Int64  // of the host
	fallback atomic.Uint64 // reads that went to the primary
	hedged   atomic.Uint64 // reads that were sent to two servers
	won      atomic.Uint64 // those of them that the second server answered first
}

// replicaHost is a replica as a host. It is opened on first use.
type replicaHost struct {
	place shards.Host // see [shards.Host.Replica]
	of    *replicas
	index int

	reads  atomic.Uint64 // reads that were sent to it
	failed atomic.Uint64 // those of them that went to another server
	pool   atomic.Pointer[host]

	mu     sync.Mutex // held while pool is set
	closed error      // guarded by mu
}

// newReplicas returns the replicas of a host, nil if it has none.
func newReplicas(ctx context.Context, h *host, cfg Config) (*replicas, error) {
	if len(h.opened.Replicas) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	rs := &replicas{primary: h, cfg: cfg, base: context.WithoutCancel(ctx)}
	var servers []replica.Server
	for i := range h.opened.Replicas {
		r := &replicaHost{place: h.opened.Replica(i), of: rs, index: i}
		if _, err := pgxpool.ParseConfig(r.place.ConnString()); err != nil {
			return nil, &shards.HostError{Host: r.place.Name, Err: shards.ErrBadDSN}
		}
		rs.all = append(rs.all, r)
		servers = append(servers, replica.Server{Name: r.place.Name, Connect: r.connect})
	}
	rs.Set = replica.New(ctx, replica.Server{Name: h.opened.Name, Connect: func(ctx context.Context) (*pgx.Conn, error) { return h.ConnectBeside(ctx) }}, servers)
	rs.Promoted = func() { h.LookForPrimary() }
	return rs, nil
}

// open returns the replica as a host. It opens it with no lock held, because the user's Config.Pool and logger are called.
func (r *replicaHost) open() (*host, error) {
	if h, err := r.use(nil); h != nil || err != nil {
		return h, err
	}
	h, err := openHost(r.of.base, r.place, r.of.cfg, nil, r)
	if err != nil {
		return nil, &shards.HostError{Host: r.place.Name, Err: err}
	}
	h.expect(int(r.of.shards.Load()))
	used, err := r.use(h)
	if used != h {
		h.close(r.of.base, errReplicaLeft)
	}
	return used, err
}

// use makes h the replica's host, unless it has one or is closed, and returns the one it has, nil if none.
func (r *replicaHost) use(h *host) (*host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return nil, &shards.HostError{Host: r.place.Name, Err: r.closed}
	}
	r.pool.CompareAndSwap(nil, h)
	return r.pool.Load(), nil
}

func (r *replicaHost) connect(ctx context.Context) (*pgx.Conn, error) {
	h, err := r.open()
	if err != nil {
		return nil, err
	}
	return h.ConnectBeside(ctx)
}

// server returns the server that a connection leads to: the address of a replica may stand for several.
func (r *replicaHost) server(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	seen, err := r.of.Ask(ctx, r.index, conn)
	return seen.Server, err
}

// close closes the replicas and waits until they are not in use. why is the reason for which the primary is closed.
func (rs *replicas) close(ctx context.Context, why error) {
	if conns.Retired(why) {
		why = errReplicaLeft
	}
	rs.Close(func() {
		var wait sync.WaitGroup
		for _, r := range rs.all {
			wait.Go(func() { r.close(ctx, why) })
		}
		wait.Wait()
	})
}

func (r *replicaHost) close(ctx context.Context, why error) {
	r.mu.Lock()
	r.closed = why
	h := r.pool.Load()
	r.mu.Unlock()
	if h != nil {
		h.close(ctx, why)
	}
}
