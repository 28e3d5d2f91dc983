package router

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// PoolConfig returns the config of a separate pool for the shard, for what a Shard cannot do because it shares its
// connections: LISTEN, VACUUM, CREATE INDEX CONCURRENTLY, COPY by hand, session locks, a job queue. The config comes from
// the host's DSN, [Config.Pool] and the credentials, and sets the shard's search_path in each session. You may change it
// before you make the pool, but for address, TLS, database, user, password and search_path, which each connection gets anew; a pool
// of the host's full size is rarely needed.
//
// The pool follows the shard: it makes each new connection to the shard's current host, to the address that takes writes
// if there are several, with current credentials. It closes a connection to a host that the shard has left when the
// connection is next acquired. A connection that is in use when the shard moves stays open, and statements on it fail
// because the schema is gone. The pool does not retry statements, and it detects a host that is down as any pgx pool does.
// Router.Close does not close the pool.
//
// PgBouncer refuses a session's search_path unless its ignore_startup_parameters or track_extra_parameters names it, and
// with the former it does not set it. Use a DSN that connects to the server itself.
func (s Shard) PoolConfig() *pgxpool.Config {
	p := s.placement.now()
	config := p.host.plain.Copy()
	config.ConnConfig.RuntimeParams["search_path"] = p.Path
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.BeforeConnect = s.connectToHost
	prepare, acquire := config.PrepareConn, config.BeforeAcquire //nolint:staticcheck // deprecated, and still in use
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		switch {
		case conn.PgConn().CustomData()[hostKey] != s.placement.now().host:
			return false, nil
		case prepare != nil:
			return prepare(ctx, conn)
		case acquire != nil:
			return acquire(ctx, conn), nil
		}
		return true, nil
	}
	return config
}

// ConnConfig returns the config of one separate connection to the shard, see [Shard.PoolConfig]. It does not follow the
// shard to another host, and its credentials may expire within minutes. ctx governs getting the credentials. The error is a
// [shards.HostError].
func (s Shard) ConnConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	config := s.PoolConfig()
	if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	return config.ConnConfig, nil
}

// hostKey is the key in a connection's CustomData that holds the connection's host.
const hostKey = "kiloshard.host"

// connectToHost sets the address and credentials of the shard's current host in a config.
func (s Shard) connectToHost(ctx context.Context, c *pgx.ConnConfig) error {
	p := s.placement.now()
	fresh := p.host.plain.ConnConfig.Copy()
	fresh.LookupFunc, fresh.AfterNetConnect = c.LookupFunc, c.AfterNetConnect // BeforeConnect wraps these two to get the credentials
	if err := p.host.plain.BeforeConnect(ctx, fresh); err != nil {
		return &shards.HostError{Host: p.host.Name, Err: err}
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = fresh.Host, fresh.Port, fresh.TLSConfig, fresh.Fallbacks
	c.Database, c.User, c.Password = fresh.Database, fresh.User, fresh.Password
	c.LookupFunc, c.AfterNetConnect = fresh.LookupFunc, fresh.AfterNetConnect
	c.RuntimeParams["search_path"] = p.Path
	after := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[hostKey] = p.host
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
	return nil
}
