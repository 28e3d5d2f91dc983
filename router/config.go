package router

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	// name such as pg-a/0, before its first read; its error keeps that replica from being used. If two calls open a host at
	// the same time, Pool is called for both, and one result is closed. Hooks that Pool sets must leave the prepared
	// statements of a connection alone. Defaults to what the DSN says.
	Pool func(host shards.Host, cfg *pgxpool.Config) error

	// Credentials returns the credentials for each new connection, which replace those of the DSN: tokens that are good for
	// minutes, passwords from a vault. Defaults to what the map's hosts have of [shards.Map.WithCredentials].
	Credentials shards.CredentialsFunc

	// Statements is how many prepared statements a connection keeps, those of all its shards together, the least recently
	// used closed first, and besides them one of the router's own for each shard that it writes, as many at most. They take most
	// of a session's memory on the server, some 15 kB each. Defaults to 1024.
	Statements int

	// DirectoryCache is how many entries of a directory are kept in memory, the least recently used dropped first.
	// Defaults to 100,000.
	DirectoryCache int

	// DirectoryMaxAge is how long an entry of the directory is used before it is read again. So it is how long a key that
	// another process has moved is still taken to its old shard. Defaults to one minute.
	DirectoryMaxAge time.Duration

	// Failover says when a host counts as down, and how long calls wait for a new primary.
	Failover Failover

	// NoGroups sends each statement by itself, and repeats none but those of readers. It is for databases in which views are
	// replaced, while services run, by ones that call functions with an effect: see Limits of the package.
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

// logger returns the logger of a config, which is silent if there is none.
func (cfg Config) logger() *slog.Logger {
	if cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return cfg.Logger
}

// Maps is where a router gets its map and the changes of it, such as a mapstore.Source.
type Maps interface {
	// Load returns the map as it is now, or the last one that is known.
	Load(ctx context.Context) (*shards.Map, error)

	// Watch yields the map whenever it is newer than version after, and an error for each failed attempt to read it. It
	// continues until ctx ends.
	Watch(ctx context.Context, after int) iter.Seq2[*shards.Map, error]
}

// staler is a source of maps that knows whether its map may not be the present one, as a mapstore.Source does, and when
// that is over: why is nil then.
type staler interface {
	Stale() (since time.Time, why error)
}
