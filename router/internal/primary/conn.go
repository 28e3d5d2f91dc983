package primary

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection to an address of the host.
type Conn struct {
	net.Conn
	address *address
	server  atomic.Pointer[string] // at the other end, see role; nil if unknown
	cut     atomic.Bool
}

// ConnOf returns the Conn inside a connection that was made with [Watch.BeforeConnect], nil if something else wraps it.
func ConnOf(conn net.Conn) *Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*Conn)
	return c
}

// Cut reports whether the watch has closed the connection.
func (c *Conn) Cut() bool { return c.cut.Load() }

// Read counts reads that return data.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.address.callers.Add(1)
	}
	return n, err
}

// Close may be called more than once.
func (c *Conn) Close() error {
	c.address.mu.Lock()
	delete(c.address.conns, c)
	c.address.mu.Unlock()
	return c.Conn.Close()
}

// BeforeConnect is for [pgxpool.Config.BeforeConnect]: it sends a new connection to the primary. Before the first request
// is admitted it waits as [Watch.Admit] does. Its error is from that, or from Config.BeforeConnect.
func (w *Watch) BeforeConnect(ctx context.Context, c *pgx.ConnConfig) error {
	if err := w.prepare(ctx, c); err != nil {
		return err
	}
	w.mu.Lock()
	admitted := w.admitted
	w.mu.Unlock()
	if !admitted { // the pool connects before the first request
		if err := w.Admit(ctx, nil); err != nil {
			return err
		}
	}
	w.mu.Lock()
	a, up, closed, err := w.primary, w.up, w.closed, w.downError()
	w.mu.Unlock()
	switch {
	case closed != nil && !up: // as in Admit
		return closed
	case !up: // requests wait in Admit, where they can go elsewhere
		return err
	}
	c.DialFunc = a.dial(c.DialFunc)
	if w.Any {
		return nil
	}
	if w.several {
		a.only(c)
	}
	asked := c.ValidateConnect
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if asked != nil {
			if err := asked(ctx, conn); err != nil {
				return err
			}
		}
		return w.check(ctx, conn)
	}
	return nil
}

// prepare calls Config.BeforeConnect.
func (w *Watch) prepare(ctx context.Context, c *pgx.ConnConfig) error {
	if w.Config.BeforeConnect == nil {
		return nil
	}
	if err := w.Config.BeforeConnect(ctx, c); err != nil {
		return notAskedError{err}
	}
	return nil
}

// check records which server a new connection leads to. If the host has several addresses, it refuses a server that is no
// longer the primary.
func (w *Watch) check(ctx context.Context, conn *pgconn.PgConn) error {
	r, err := askRole(ctx, conn)
	if err != nil {
		return err
	}
	if c := ConnOf(conn.Conn()); c != nil && r.server != "" {
		c.server.Store(&r.server)
	}
	if !w.several {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfit(r)
}
