package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// ErrNoReplica says that no replica of the host was such as a reader with ReplicaOnly wants it.
var ErrNoReplica = replica.ErrNone

// errReplicaLeft says that a replica's host has left the map, for which a reader looks for the shard's new home.
var errReplicaLeft = errors.New("the host of the replica is no longer in use")

// replicas are those of a host, which is their primary.
type replicas struct {
	*replica.Set
	primary *host
	cfg     Config
	base    context.Context // of their pools
	all     []*replicaHost

	shards   atomic.Int64  // of the host
	fallback atomic.Uint64 // reads that the primary got
	hedged   atomic.Uint64 // reads that were sent twice
	won      atomic.Uint64 // of them, how many the second was quicker with
}

// replicaHost is a replica as a host, which is opened when it is wanted for the first time.
type replicaHost struct {
	place shards.Host // see [shards.Host.Replica]
	of    *replicas
	index int

	reads  atomic.Uint64 // how many were sent
	failed atomic.Uint64 // how many of them went elsewhere
	pool   atomic.Pointer[host]

	opening sync.Mutex
	closed  error // guarded by opening
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
	rs.Set = replica.New(ctx, replica.Server{Name: h.Name, Connect: h.connectBeside}, servers)
	return rs, nil
}

// open returns the replica as a host.
func (r *replicaHost) open() (*host, error) {
	if h := r.pool.Load(); h != nil {
		return h, nil
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	if h := r.pool.Load(); h != nil {
		return h, nil
	}
	if r.closed != nil {
		return nil, &shards.HostError{Host: r.place.Name, Err: r.closed}
	}
	h, err := openHost(r.of.base, r.place, r.of.cfg, r)
	if err != nil {
		return nil, &shards.HostError{Host: r.place.Name, Err: err}
	}
	h.expect(int(r.of.shards.Load()))
	r.pool.Store(h)
	return h, nil
}

func (r *replicaHost) connect(ctx context.Context) (*pgx.Conn, error) {
	h, err := r.open()
	if err != nil {
		return nil, err
	}
	return h.connectBeside(ctx)
}

// server returns which of its servers a connection leads to.
func (r *replicaHost) server(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	seen, err := r.of.Ask(ctx, r.index, conn)
	return seen.Server, err
}

// connectBeside makes a connection as the pool does, beside it.
func (h *host) connectBeside(ctx context.Context) (conn *pgx.Conn, err error) {
	pool := h.lines.pool.Config()
	err = h.login.Try(ctx, func(ctx context.Context) (err error) {
		config := pool.ConnConfig.Copy()
		config.Tracer = nil
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return err
			}
		}
		conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	return conn, err
}

// close closes the replicas, because the primary is closed for a reason, and waits until nothing is under way with them.
func (rs *replicas) close(ctx context.Context, why error) {
	if retired(why) {
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
	r.opening.Lock()
	r.closed = why
	h := r.pool.Load()
	r.opening.Unlock()
	if h != nil {
		h.lines.close(ctx, why)
	}
}

// copies are the homes in which readers find a shard: on the primary, and on each replica. They are made when they are
// wanted: most shards of most hosts are read in few of them.
type copies []atomic.Pointer[home]

// copy returns the home in which readers find the shard on the primary, or on a replica, which is opened.
func (h *home) copy(rs *replicas, i int) (*home, error) {
	all := h.copies.Load()
	if all == nil {
		size := 1
		if rs != nil {
			size += len(rs.all)
		}
		made := make(copies, size)
		h.copies.CompareAndSwap(nil, &made)
		all = h.copies.Load()
	}
	at := &(*all)[i+1]
	if found := at.Load(); found != nil {
		return found, nil
	}
	on := h.host
	if i != replica.Primary {
		var err error
		if on, err = rs.all[i].open(); err != nil {
			return nil, err
		}
	}
	at.CompareAndSwap(nil, &home{Shard: session.Shard{Number: h.Number, Schema: h.Schema, Path: h.Path, Reads: true, Host: on.Host}, host: on})
	return at.Load(), nil
}

// dropCopies makes the homes in which readers found the shard ones that no connection is kept for, since it has gone to
// another home.
func (h *home) dropCopies(next *home) {
	all := h.copies.Load()
	if all == nil {
		return
	}
	for i := range *all {
		if c := (*all)[i].Load(); c != nil {
			c.next.Store(next)
			c.host.lines.drop(c)
		}
	}
}
