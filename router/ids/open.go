package ids

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// Central is a generator on its own hosts, with their pools: tickets, a sequence or a row.
type Central struct {
	Generator[shards.ID]
	tickets *Tickets // nil for a sequence or a row
	pools   []*pool
}

// Config says which generator [Open] returns.
type Config struct {
	Map  *shards.Map
	Name string // one of tickets, a sequence or a row

	// Timeout, Retry and Logger are those of [TicketsConfig], and only for tickets.
	Timeout, Retry time.Duration
	Logger         *slog.Logger
}

// Open returns the generator with a name in the map. It does not connect: the first NextIDs does. The caller must Close it. It
// returns [shards.ErrNoGenerator] if the map has no such generator or if the shards make its IDs (see [OnShard]), and a
// [shards.HostError] for a wrong DSN.
func Open(ctx context.Context, cfg Config) (*Central, error) {
	name := cfg.Name
	g, ok := cfg.Map.Generator(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%q: %w", name, shards.ErrNoGenerator)
	case g.InShards():
		return nil, fmt.Errorf("%q is %s, made in every shard: %w on hosts of its own", name, g.Kind, shards.ErrNoGenerator)
	}
	c := &Central{}
	var servers []TicketServer
	for _, host := range g.Hosts {
		pool, err := openPool(ctx, cfg.Map, host)
		if err != nil {
			c.Close()
			return nil, &shards.HostError{Host: host, Err: err}
		}
		c.pools = append(c.pools, pool)
		servers = append(servers, TicketServer{Name: host, DB: pool})
	}
	function := "kiloshard." + sql.Generator{Name: name}.Function()
	if g.Kind == shards.Tickets {
		c.tickets = NewTickets(TicketsConfig{
			Servers: servers, Function: function, Timeout: cfg.Timeout, Retry: cfg.Retry, Logger: cfg.Logger,
		})
		c.Generator = c.tickets
	} else {
		c.Generator = onHost{servers[0].Name, newFunction[shards.ID](servers[0].DB, function)}
	}
	return c, nil
}

// Close closes the connections. It waits for those that are in use.
func (c *Central) Close() {
	if c.tickets != nil {
		c.tickets.Close()
	}
	for _, pool := range c.pools {
		pool.Close()
	}
}

func openPool(ctx context.Context, m *shards.Map, name string) (*pool, error) {
	for _, host := range m.Hosts() {
		if host.Name != name {
			continue
		}
		login, config, err := connect.ForPool(host)
		if err != nil {
			return nil, err
		}
		connect.StateTracked(&config.ConnConfig.Config)
		config.ConnConfig.RuntimeParams["application_name"] = "kiloshard"
		login.Attend(config)
		p, err := pgxpool.NewWithConfig(ctx, config)
		return &pool{p, login}, err
	}
	panic("bug: a generator's host is not in the map")
}

// pool is a pool that connects with the login of a host.
type pool struct {
	*pgxpool.Pool
	login *connect.Login
}

// Query runs a query. Its connection errors are those of package connect.
func (p *pool) Query(ctx context.Context, sql string, args ...any) (rows pgx.Rows, err error) {
	err = p.login.Try(ctx, func(ctx context.Context) (err error) {
		rows, err = p.Pool.Query(ctx, sql, args...) //nolint:sqlclosecheck // the caller closes them
		return err
	})
	return rows, err
}

// onHost adds the name of a host to the errors of a pool.
type onHost struct {
	host      string
	generator Generator[shards.ID]
}

func (g onHost) NextIDs(ctx context.Context, n int) ([]shards.ID, error) {
	ids, err := g.generator.NextIDs(ctx, n)
	if err != nil {
		return nil, &shards.HostError{Host: g.host, Err: err}
	}
	return ids, nil
}
