package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/shards"
)

// Router finds the shard of a key or an ID and returns its handle. It has one pool of connections for each host. It is
// safe for concurrent use.
type Router struct {
	now atomic.Pointer[snapshot]

	open         func(shards.Host) (*host, error)
	newDirectory func() *directory.Directory
	maps         Maps               // nil if the config has none
	told         chan struct{}      // has an element once the source has yielded another map
	stop         context.CancelFunc // stops watching maps
	ending       sync.WaitGroup     // waits for the watcher and for hosts that left the map to close
	closeLimit   time.Duration      // how long Close waits for connections in use
	life         context.Context    // ends when Close stops waiting
	endLife      context.CancelFunc

	log       *slog.Logger
	tracers   []pgx.QueryTracer
	directory *directory.Directory // written once, before the first snapshot whose map allocates

	mu      sync.Mutex  // held while the snapshot is replaced; guards the fields below
	closed  atomic.Bool // written with mu held
	state   MapState    // its Err is that of a refused map
	unheard trouble     // the source's last error; the source may have recovered
}

// ForID returns the shard that made an ID. It returns [shards.ErrNoShard] if no shard of the map can have made the ID.
func (r *Router) ForID(id shards.ID) (Shard, error) {
	now := r.now.Load()
	n, err := now.shards.ForID(id)
	if err != nil {
		return Shard{}, err
	}
	return now.on(n), nil
}

// ForShard returns the shard with the number n. It returns [shards.ErrNoShard] if the map has no such shard.
func (r *Router) ForShard(n shards.Number) (Shard, error) {
	now := r.now.Load()
	if !now.shards.Has(n) {
		return Shard{}, noShard(n, now.shards)
	}
	return now.on(n), nil
}

// ForTx returns the shard of a transaction that a [Shard] of this router has begun, also if that is a savepoint. It returns
// [ErrOtherTx] for any other, such as one of another router or of a replica, or one inside a type of the caller's own.
func (r *Router) ForTx(tx pgx.Tx) (Shard, error) {
	now, shard := r.now.Load(), session.ShardOf(tx)
	if shard == nil || !slices.ContainsFunc(now.hosts, func(h *host) bool { return h.Pool.Host == shard.Host }) {
		return Shard{}, ErrOtherTx
	}
	return now.on(shard.Number), nil
}

// All returns the set of all shards.
func (r *Router) All() shards.Set { return r.Map().All() }

// Tracers returns the tracers of the config, for packages that build on a router and call tracers themselves, such as
// package many.
func (r *Router) Tracers() []pgx.QueryTracer { return slices.Clone(r.tracers) }

// Format prints which map the router uses, for every verb, so that no DSN is printed.
func (r *Router) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "router of "+r.Map().String()) }

// MapState describes the map that a router uses.
type MapState struct {
	Version int       // version of the map; 0 if it was never in a store
	Since   time.Time // when the router started to use it
	Swaps   uint64    // how many times the router has changed its map

	// Err says why the map may be out of date since ErrAt: the router refused a newer map, the source cannot be reached,
	// or the router started from a copy. With Maps other than a mapstore.Source, Err is the last error, at ErrAt. It
	// stays until a newer map arrives, because such sources do not report that they have recovered.
	Err   error
	ErrAt time.Time
}

// trouble is the error of a source that could not return a newer map, and when it happened.
type trouble struct {
	err error
	at  time.Time
}

// Map returns the map that the router uses now.
func (r *Router) Map() *shards.Map { return r.now.Load().shards }
