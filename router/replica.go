package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

var (
	errRegressed   = errors.New("the replica is behind where it was: it was started again, or is another one")
	errNoStandby   = errors.New("the server is no standby: it was promoted")
	errReplicaLeft = errors.New("the host of the replica is no longer in use")
)

// replica is one of a host.
type replica struct {
	place  shards.Host // see [shards.Host.Replica]
	of     *replicas
	kicked chan struct{} // has it measured at once

	now    atomic.Pointer[standing]
	behind int64 // in bytes, as of the last measurement; guarded by replicas.mu

	reads    atomic.Uint64 // how many were sent
	failed   atomic.Uint64 // how many of them went elsewhere
	pool     atomic.Pointer[host]
	life     atomic.Pointer[life]
	timeline atomic.Uint32 // the highest that its data are known to be of

	opening sync.Mutex
	closed  error // guarded by opening
}

// standing is what is known of a replica at a time.
type standing struct {
	why      error     // it is not used; nil if it may be
	measured time.Time // before it was asked
	replayed uint64    // how far it was then, at least
	asOf     time.Time // it has everything that could be seen on the primary then; zero if unknown
	system   int64     // the cluster that it is of
}

// life ends when a replica does not answer any more: those who wait for it need not wait any longer.
type life struct {
	ctx context.Context
	end context.CancelFunc
}

func newReplica(of *replicas, place shards.Host) (*replica, error) {
	if _, err := pgxpool.ParseConfig(place.ConnString()); err != nil {
		return nil, &shards.HostError{Host: place.Name, Err: shards.ErrBadDSN}
	}
	r := &replica{place: place, of: of, kicked: make(chan struct{}, 1)}
	r.begin()
	return r, nil
}

// begin begins a life.
func (r *replica) begin() {
	ctx, end := context.WithCancel(r.of.base)
	if before := r.life.Swap(&life{ctx, end}); before != nil {
		before.end()
	}
}

// open returns the replica as a host, which is opened when it is wanted for the first time.
func (r *replica) open() (*host, error) {
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

func (r *replica) close(why error) {
	r.opening.Lock()
	r.closed = why
	h := r.pool.Load()
	r.opening.Unlock()
	if h != nil {
		h.lines.close(why)
	}
	r.life.Load().end()
}

// admit checks that a new connection leads to where the measurements were made: a replica that was started again may have
// gone back behind what it had replayed, and goes on from there.
func (r *replica) admit(ctx context.Context, conn *pgx.Conn) error {
	var replayed int64
	var standby bool
	const query = `select pg_catalog.pg_is_in_recovery(), coalesce((pg_catalog.pg_last_wal_replay_lsn() - '0/0')::int8, 0)`
	result := conn.PgConn().ExecParams(ctx, query, nil, nil, nil, nil).Read() // past pgx's tracer: it is no caller's
	if result.Err != nil {
		return result.Err
	}
	standby = string(result.Rows[0][0]) == "t"
	if _, err := fmt.Sscan(string(result.Rows[0][1]), &replayed); err != nil {
		return err
	}
	switch known := r.now.Load(); {
	case !standby:
		r.doubt(errNoStandby)
		return errNoStandby
	case known != nil && uint64(replayed) < known.replayed:
		r.doubt(errRegressed)
		return errRegressed
	}
	return nil
}

// doubt has a replica not used until it was measured again.
func (r *replica) doubt(why error) {
	r.of.mu.Lock()
	r.set(standing{why: why})
	r.of.mu.Unlock()
	r.kick()
}

// kick has the replica measured at once.
func (r *replica) kick() {
	select {
	case r.kicked <- struct{}{}:
	default: // it will be
	}
}

// set publishes what is known. The caller holds replicas.mu.
func (r *replica) set(s standing) { r.now.Store(&s) }

// lag returns how old at most is what a read sees that begins now.
func (s *standing) lag(now time.Time) time.Duration { return now.Sub(s.asOf) }
