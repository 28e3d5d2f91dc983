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
	"github.com/kiloshard/kiloshard/shards"
)

// Router takes a key or an ID to the handle of its shard. It has one pool of connections for each host. It is safe for
// concurrent use.
type Router struct {
	now atomic.Pointer[snapshot]

	open         func(shards.Host) (*host, error)
	newDirectory func() *directory.Directory
	maps         Maps               // nil without
	stop         context.CancelFunc // ends the watching of them
	ending       sync.WaitGroup     // that, and the ends of hosts that have left the map
	life         context.Context    // ends when Close does not wait any longer
	endLife      context.CancelFunc

	log       *slog.Logger
	tracers   []pgx.QueryTracer
	directory *directory.Directory // written once, before the first snapshot whose map allocates

	turning sync.Mutex // held by whoever goes over to another map
	closed  bool       // guarded by turning

	mu      sync.Mutex // guards what follows; may be taken with turning held
	state   MapState   // its Err that of a map that was refused
	unheard trouble    // of the source, which may be over
}

// ForID returns the shard that made an ID. It returns [shards.ErrNoShard] for an ID that no shard of the map can have
// made.
func (r *Router) ForID(id shards.ID) (Shard, error) {
	now := r.now.Load()
	n, err := now.shards.ForID(id)
	if err != nil {
		return Shard{}, err
	}
	return now.on(n), nil
}

// ForShard returns the shard with a number. It returns [shards.ErrNoShard] for a number that the map does not have.
func (r *Router) ForShard(n shards.Number) (Shard, error) {
	now := r.now.Load()
	if !now.shards.Has(n) {
		return Shard{}, noShard(n, now.shards)
	}
	return now.on(n), nil
}

// All returns the set of all shards.
func (r *Router) All() shards.Set { return r.Map().All() }

// Tracers returns the tracers of the config, for what works on top of a router and has something to tell them: package
// many does.
func (r *Router) Tracers() []pgx.QueryTracer { return slices.Clone(r.tracers) }

// Format prints which map the router goes by, whatever the verb, so that no DSN is printed.
func (r *Router) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "router of "+r.Map().String()) }

// MapState says by which map a router goes.
type MapState struct {
	Version int       // of the map; 0 if it was never in a store
	Since   time.Time // when the router went over to it
	Swaps   uint64    // how often it has gone over to another one

	// Err is why that may not be the newest one, since ErrAt: a newer one was refused, none can be heard of, or the
	// router has started from a copy. Of Maps other than a mapstore.Source it is what went wrong last since then, at
	// ErrAt, and stays until there is a newer map, for they do not tell when trouble is over.
	Err   error
	ErrAt time.Time
}

// trouble is that the source has no newer map, since a time.
type trouble struct {
	err error
	at  time.Time
}

// Map returns the map by which the router decides at this moment.
func (r *Router) Map() *shards.Map { return r.now.Load().shards }
