package router

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// host is a host of the map with its pool.
type host struct {
	shards.Host
	pool       *pgxpool.Pool
	mode       pgx.QueryExecMode // of statements that do not ask for one of their own
	statements int               // kept prepared on each connection
	trace      tracers
}

func openHost(ctx context.Context, place shards.Host, cfg Config) (*host, error) {
	config, err := pgxpool.ParseConfig(place.ConnString())
	if err != nil {
		return nil, shards.ErrBadDSN
	}
	if cfg.Pool != nil {
		if err := cfg.Pool(place, config); err != nil {
			return nil, err
		}
	}
	h := &host{
		Host:       place,
		mode:       config.ConnConfig.DefaultQueryExecMode,
		statements: cfg.Statements,
		trace:      tracersOf(config.ConnConfig.Tracer),
	}
	if err := checkMode(h.mode); err != nil {
		return nil, fmt.Errorf("default_query_exec_mode: %w", err)
	}
	h.pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// checkMode refuses the modes that ask for a statement's description in one round trip and send the statement in
// another, without a name for it: the description would have to be asked for under the shard's path each time, or be
// cached as if it were the same in all shards.
func checkMode(mode pgx.QueryExecMode) error {
	switch mode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return nil
	}
	return fmt.Errorf("%s; expected cache_statement, or exec or simple_protocol behind a pooler such as PgBouncer", mode)
}

// acquire takes a connection from the pool. Its error is a [shards.HostError].
func (h *host) acquire(ctx context.Context) (*pgxpool.Conn, *session, error) {
	lease, err := h.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, h.failed(err)
	}
	return lease, sessionOf(lease.Conn(), h), nil
}

func (h *host) failed(err error) error { return &shards.HostError{Host: h.Name, Err: err} }
