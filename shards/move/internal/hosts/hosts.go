// Package hosts keeps a session to each host of a map that was asked for.
package hosts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Host returns a host of a map by its name.
func Host(m *shards.Map, name string) (shards.Host, error) {
	if h, ok := m.HostNamed(name); ok {
		return h, nil
	}
	return shards.Host{}, &shards.FieldError{Field: "host", Found: fmt.Sprintf("%q", name), Expected: "the name of a host of the map"}
}

// Conns are sessions to the hosts of a map, which one goroutine uses.
type Conns struct {
	m      *shards.Map
	open   map[string]*pgx.Conn
	ledger map[*pgx.Conn]bool // whether its ledger is known to be of this release
}

// New returns Conns without a session. The caller closes them.
func New(m *shards.Map) *Conns {
	return &Conns{m: m, open: map[string]*pgx.Conn{}, ledger: map[*pgx.Conn]bool{}}
}

// Get returns the session to a host, and opens it if there is none.
func (c *Conns) Get(ctx context.Context, name string) (*pgx.Conn, error) {
	if conn := c.open[name]; conn != nil && !conn.IsClosed() {
		return conn, nil
	}
	host, err := Host(c.m, name)
	if err != nil {
		return nil, err
	}
	conn, err := session.Open(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	c.open[name] = conn
	return conn, nil
}

// GetWithLedger returns the session to a host whose ledger is of this release. It looks that up once a session, since it reads the catalogs.
func (c *Conns) GetWithLedger(ctx context.Context, name string) (*pgx.Conn, error) {
	conn, err := c.Get(ctx, name)
	if err != nil || c.ledger[conn] {
		return conn, err
	}
	if err := ledger.Install(ctx, conn); err != nil {
		return nil, &shards.HostError{Host: name, Err: err}
	}
	c.ledger[conn] = true
	return conn, nil
}

// Close ends all sessions.
func (c *Conns) Close(ctx context.Context) {
	for _, conn := range c.open {
		session.Close(ctx, conn)
	}
}
