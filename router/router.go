package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// defaultStatements is enough for 64 shards of 16 statements on each connection.
const defaultStatements = 1024

// Config says what a [Router] routes to, and how.
type Config struct {
	// Map says where every shard lives. It is required.
	Map *shards.Map

	// Pool adjusts the pool of a host before it is made: its size, TLS, a tracer. It is called once a host, and its
	// error ends [New]. The hooks that it sets must leave the prepared statements of a connection alone. Defaults to
	// what the DSN says.
	Pool func(host shards.Host, cfg *pgxpool.Config) error

	// Statements is how many prepared statements a connection keeps, those of all its shards together. It is what most
	// of a session's memory on the server goes to, some 15 kB each. Defaults to 1024.
	Statements int

	// DirectoryCache is how many entries of a directory are kept in memory, those used last. Defaults to 100,000.
	DirectoryCache int

	// DirectoryMaxAge is how long after it was read an entry of the directory is used without asking again, and so for
	// how long a key that another process has moved is still taken to its old shard. Defaults to one minute.
	DirectoryMaxAge time.Duration

	// Pipeline says which single statements may be sent together. Defaults to PipelineReads.
	Pipeline Pipeline
}

// Router takes a key or an ID to the handle of its shard. It has one pool of connections for each host. It is safe for
// concurrent use.
type Router struct {
	shards *shards.Map
	hosts  []*host // in the order of the map
	homes  []home  // by Number

	directory *directory // nil if the strategy is arithmetic
}

// New checks the DSN of every host and makes the pools. It does not connect: the first statement on a host does, and
// [Router.Ping] does. The values of ctx are passed on to the hooks of the pools; its end means nothing to them.
//
// The error is a [shards.HostError] for a host whose DSN or pool is wrong, without the DSN, and a [shards.FieldError]
// for a Config that is wrong otherwise. After an error nothing is left open.
func New(ctx context.Context, cfg Config) (*Router, error) {
	switch {
	case cfg.Map == nil:
		return nil, &shards.FieldError{Field: "Map", Found: "nil", Expected: "a map of the shards"}
	case cfg.Statements < 0:
		return nil, &shards.FieldError{Field: "Statements", Found: "less than 0", Expected: "how many statements a connection keeps, or 0 for 1024"}
	case cfg.DirectoryCache < 0:
		return nil, &shards.FieldError{Field: "DirectoryCache", Found: "less than 0", Expected: "how many entries are kept, or 0 for 100,000"}
	case cfg.DirectoryMaxAge < 0:
		return nil, &shards.FieldError{Field: "DirectoryMaxAge", Found: "less than 0", Expected: "how long an entry is used, or 0 for a minute"}
	case cfg.Statements == 0:
		cfg.Statements = defaultStatements
	}
	r := &Router{shards: cfg.Map}
	for _, place := range cfg.Map.Hosts() {
		h, err := openHost(ctx, place, cfg)
		if err != nil {
			r.Close()
			return nil, &shards.HostError{Host: place.Name, Err: err}
		}
		r.hosts = append(r.hosts, h)
	}
	r.homes = make([]home, cfg.Map.Len())
	for i := range r.homes {
		n := shards.Number(i)
		r.homes[i] = home{
			number: n,
			schema: cfg.Map.Schema(n),
			path:   cfg.Map.SearchPath(n),
			host:   r.hosts[cfg.Map.HostIndex(n)],
		}
	}
	if cfg.Map.HasDirectory() {
		r.directory = newDirectory(r, cfg)
	}
	for _, h := range r.hosts {
		h.expect(len(cfg.Map.NumbersOn(h.Name)))
	}
	return r, nil
}

// ForID returns the shard that made an ID. It returns [shards.ErrNoShard] for an ID that no shard of the map can have
// made.
func (r *Router) ForID(id shards.ID) (Shard, error) {
	n, err := r.shards.ForID(id)
	if err != nil {
		return Shard{}, err
	}
	return Shard{&r.homes[n]}, nil
}

// ForShard returns the shard with a number. It returns [shards.ErrNoShard] for a number that the map does not have.
func (r *Router) ForShard(n shards.Number) (Shard, error) {
	if !r.shards.Has(n) {
		return Shard{}, noShard(n, r.shards)
	}
	return Shard{&r.homes[n]}, nil
}

// Map returns the map by which the router decides.
func (r *Router) Map() *shards.Map { return r.shards }

// Ping asks every host for a sign of life, all at once, until ctx ends. It returns a [shards.HostError] for each one
// that gave none, joined in the order of the map.
func (r *Router) Ping(ctx context.Context) error {
	errs := make([]error, len(r.hosts))
	var wait sync.WaitGroup
	for i, h := range r.hosts {
		wait.Go(func() {
			errs[i] = h.ping(ctx)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Close closes all connections. It blocks until every connection that is in use has been given back: rows closed,
// transactions ended. Calls made afterwards fail.
func (r *Router) Close() {
	if r.directory != nil {
		r.directory.close()
	}
	var wait sync.WaitGroup
	for _, h := range r.hosts {
		wait.Go(h.lines.close)
	}
	wait.Wait()
}
