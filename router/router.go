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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"
)

// defaultStatements is enough for 64 shards of 16 statements on each connection.
const defaultStatements = 1024

// Config says what a [Router] routes to, and how.
type Config struct {
	// Map says where every shard lives, for a router whose map changes by [Router.SetMap] only. Either Map or Maps is
	// required.
	Map *shards.Map

	// Maps is the source of the map. The router loads the map from it and follows each newer one.
	Maps Maps

	// Pool adjusts the pool of a host before it is made: its size, TLS, a tracer. It is called once for each host; its
	// error ends [New], or keeps the router from following a later map. It is also called once for each replica, which has a
	// name such as pg-a/0, before its first read; its error keeps that replica from being used. Pool must not call the
	// router, and hooks that it sets must leave the prepared statements of a connection alone. Defaults to what the DSN says.
	Pool func(host shards.Host, cfg *pgxpool.Config) error

	// Credentials returns the credentials for each new connection, which replace those of the DSN: tokens that are good for
	// minutes, passwords from a vault. Defaults to what the map's hosts have of [shards.Map.WithCredentials].
	Credentials shards.CredentialsFunc

	// Statements is how many prepared statements a connection keeps, those of all its shards together, the least recently
	// used closed first. They take most of a session's memory on the server, some 15 kB each. Defaults to 1024.
	Statements int

	// DirectoryCache is how many entries of a directory are kept in memory, the least recently used dropped first.
	// Defaults to 100,000.
	DirectoryCache int

	// DirectoryMaxAge is how long an entry of the directory is used before it is read again. So it is how long a key that
	// another process has moved is still taken to its old shard. Defaults to one minute.
	DirectoryMaxAge time.Duration

	// Failover says when a host counts as down, and how long calls wait for a new primary.
	Failover Failover

	// NoGroups sends each statement by itself. It is for services whose views or operators hide functions that write and
	// swallow their own errors: in a group, which only reads, these would be called without effect.
	NoGroups bool

	// Tracers trace the statements of the service on all hosts, in this order, after a tracer in the pool's config. Each is
	// called by those of pgx's tracing interfaces that it has, by [operation.UnsentTracer], and by package many's Tracer.
	// [operation.Of] returns the shard and more. Packages tracing and metrics have such tracers. Without tracers nothing is
	// spent on them.
	Tracers []pgx.QueryTracer

	// Logger logs changes of the map, hosts that are opened and closed, a host that is down or up again, a primary at
	// another address, two primaries, a pooler that was noticed, connections that were lost with calls under way, trouble
	// with a directory's counts, transactions that [Retry] gives up, and slow statements. It never logs arguments or
	// passwords. Defaults to silence.
	Logger *slog.Logger

	// SlowStatement is the time, waiting included, from which on a statement or a batch is logged as slow: with its text if
	// it has arguments, which are left out. Defaults to never.
	SlowStatement time.Duration
}

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
	directory *directory.Directory // written once, before the first snapshot with one

	turning sync.Mutex // held by whoever goes over to another map
	closed  bool       // guarded by turning

	mu      sync.Mutex // guards what follows; may be taken with turning held
	state   MapState   // its Err that of a map that was refused
	unheard trouble    // of the source, which may be over
}

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
		return openHost(ctx, place, cfg, maps, nil)
	}
	r.newDirectory = func() *directory.Directory { return newDirectory(r, cfg) }
	none := &snapshot{}
	first, err := none.turnTo(m, r.open)
	if err != nil {
		return nil, err
	}
	if m.HasDirectory() {
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

// All returns the set of all shards.
func (r *Router) All() shards.Set { return r.Map().All() }

// Tracers returns the tracers of the config, for what works on top of a router and has something to tell them: package
// many does.
func (r *Router) Tracers() []pgx.QueryTracer { return slices.Clone(r.tracers) }

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

// logger returns the logger of a config, which is silent if there is none.
func (cfg Config) logger() *slog.Logger {
	if cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return cfg.Logger
}

// Format prints which map the router goes by, whatever the verb, so that no DSN is printed.
func (r *Router) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "router of "+r.Map().String()) }
