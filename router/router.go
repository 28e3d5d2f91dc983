package router

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// defaultStatements is enough for 64 shards of 16 statements on each connection.
const defaultStatements = 1024

// Config says what a [Router] routes to, and how.
type Config struct {
	// Map says where every shard lives, for a router whose map changes by [Router.SetMap] only. Either it or Maps is
	// required.
	Map *shards.Map

	// Maps is asked for the map, and the router then goes over to each newer one that it yields.
	Maps Maps

	// Pool adjusts the pool of a host before it is made: its size, TLS, a tracer. It is called once a host, and its
	// error ends [New], or keeps the router from a later map; and once for each replica that is read from, which has a name
	// such as pg-a/0, when it is for the first time: its error keeps that replica from being used. It must not call the
	// router. The hooks that it sets must leave the prepared statements of a connection alone. Defaults to what the DSN says.
	Pool func(host shards.Host, cfg *pgxpool.Config) error

	// Credentials is asked for the credentials of each new connection, over what the DSNs say: tokens that are good for
	// minutes, passwords from a vault. Defaults to what the map's hosts have of [shards.Map.WithCredentials].
	Credentials shards.CredentialsFunc

	// Statements is how many prepared statements a connection keeps, those of all its shards together. It is what most
	// of a session's memory on the server goes to, some 15 kB each. Defaults to 1024.
	Statements int

	// DirectoryCache is how many entries of a directory are kept in memory, those used last. Defaults to 100,000.
	DirectoryCache int

	// DirectoryMaxAge is how long after it was read an entry of the directory is used without asking again, and so for
	// how long a key that another process has moved is still taken to its old shard. Defaults to one minute.
	DirectoryMaxAge time.Duration

	// Failover says when a host is taken for down, and how long calls wait for what takes its place.
	Failover Failover

	// Pipeline says which single statements may be sent together. Defaults to PipelineReads.
	Pipeline Pipeline

	// Tracers are told of the statements of the service on all hosts, after a tracer in the pool's config and in this
	// order, by whatever of pgx's tracing interfaces they have, and [UnsentTracer]; and of work over many shards, those that
	// are a [FanoutTracer]. [OperationOf] tells them more, such as the shard. Packages tracing and metrics have such
	// tracers. Where there are none, nothing is spent on them.
	Tracers []pgx.QueryTracer

	// Logger is told of changes of the map, hosts that are opened and closed, a host that is down, up again, has its
	// primary at another address, or has more than one, a pooler that is noticed, connections that are lost with calls under way, trouble with a
	// directory's counts, transactions that [Retry] gives up, and what SlowStatement says. No arguments and no passwords are
	// in it. Defaults to silence.
	Logger *slog.Logger

	// SlowStatement is how long a statement or a batch takes, waiting included, that is logged as slow: with its text if
	// it has arguments, which are left out. Defaults to none.
	SlowStatement time.Duration
}

// Router takes a key or an ID to the handle of its shard. It has one pool of connections for each host. It is safe for
// concurrent use.
type Router struct {
	now atomic.Pointer[snapshot]

	open         func(shards.Host) (*host, error)
	newDirectory func() *directory
	maps         Maps               // nil without
	stop         context.CancelFunc // ends the watching of them
	ending       sync.WaitGroup     // that, and the ends of hosts that have left the map

	log       *slog.Logger
	directory *directory // written once, before the first snapshot that has a choice

	mu      sync.Mutex // held by whoever goes over to another map, and guards what follows
	state   MapState   // its Err that of a map that was refused
	unheard trouble    // of the source, which may be over
	closed  bool
}

// New checks the DSN of every host and makes the pools. It does not connect: the first statement on a host does, and
// [Router.Ping] does. The values of ctx are passed on to the hooks of the pools; its end means nothing to them.
//
// With Config.Maps it asks for the map first, which ctx governs.
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
		log: cfg.logger(), maps: cfg.Maps, stop: func() {},
		open: func(place shards.Host) (*host, error) { return openHost(ctx, place, cfg, nil) },
	}
	r.newDirectory = func() *directory { return newDirectory(r, cfg) }
	none := &snapshot{}
	first, err := none.turnTo(m, r.open)
	if err != nil {
		return nil, err
	}
	if first.choice != nil {
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

// Close closes all connections. It blocks until every connection that is in use has been given back: rows closed,
// transactions ended. Calls made afterwards fail.
func (r *Router) Close() {
	r.stop()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if r.directory != nil {
		r.directory.close()
	}
	closeAll(r.now.Load().hosts)
	r.ending.Wait()
}
