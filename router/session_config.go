package router

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// PoolConfig returns the config of a pool of sessions of the shard's own, for what a Shard cannot do because it shares its
// connections: LISTEN, VACUUM, CREATE INDEX CONCURRENTLY, COPY by hand, session locks, a job queue. It is what the host's
// DSN, [Config.Pool] and the credentials say, with the shard's search_path set for each session. It may be changed before
// the pool is made from it; a pool of the host's full size is seldom wanted.
//
// The pool goes where the shard goes: each new connection is made to the host on which the shard lives by then, to the
// address that takes writes if there are several, with the credentials of that time. A connection to a host that the
// shard has left is closed when it is next acquired. One that is in use then, or held for good, stays: statements on
// it fail, because the schema is not there any more. Nothing is sent again, and a host that is down is noticed as by any
// pool. Router.Close does not close the pool.
//
// PgBouncer refuses the search_path of a session unless its ignore_startup_parameters or track_extra_parameters name it,
// and with the former does not set it: use a DSN that leads to the server.
func (s Shard) PoolConfig() *pgxpool.Config {
	p := s.placement.now()
	config := p.host.plain.Copy()
	config.ConnConfig.RuntimeParams["search_path"] = p.Path
	if config.ConnConfig.ValidateConnect == nil {
		config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.BeforeConnect = s.lead
	prepare, acquire := config.PrepareConn, config.BeforeAcquire //nolint:staticcheck // deprecated, and still in use
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		switch {
		case conn.PgConn().CustomData()[ledTo] != s.placement.now().host:
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

// ConnConfig returns the config of one session of the shard's own, see [Shard.PoolConfig], as things are now: it does not
// follow the shard, and the credentials in it may be good for minutes only. ctx governs asking for them. The error is a
// [shards.HostError].
func (s Shard) ConnConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	config := s.PoolConfig()
	if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	return config.ConnConfig, nil
}

// ledTo is where a connection of such a pool keeps the host that it leads to.
const ledTo = "kiloshard.host"

// lead has a config lead to the shard.
func (s Shard) lead(ctx context.Context, c *pgx.ConnConfig) error {
	p := s.placement.now()
	fresh := p.host.plain.ConnConfig.Copy()
	fresh.LookupFunc, fresh.AfterNetConnect = c.LookupFunc, c.AfterNetConnect // around which the credentials are asked for
	if err := p.host.plain.BeforeConnect(ctx, fresh); err != nil {
		return &shards.HostError{Host: p.host.Name, Err: err}
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = fresh.Host, fresh.Port, fresh.TLSConfig, fresh.Fallbacks
	c.Database, c.User, c.Password = fresh.Database, fresh.User, fresh.Password
	c.LookupFunc, c.AfterNetConnect = fresh.LookupFunc, fresh.AfterNetConnect
	c.RuntimeParams["search_path"] = p.Path
	after := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[ledTo] = p.host
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
	return nil
}
