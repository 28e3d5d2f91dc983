package primary

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
)

// Conn is a connection to an address of the host.
type Conn struct {
	net.Conn
	address *address
	socket  syscall.RawConn // nil if it is not known
	peek    peek
	server  atomic.Pointer[string] // Role.Server of the other end; nil if unknown
	cut     atomic.Bool
}

// ConnOf returns the Conn inside a connection that was made with [Watch.BeforeConnect]. It looks inside a TLS connection,
// and returns nil for any other wrapper.
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

// Close closes the connection. It may be called more than once.
func (c *Conn) Close() error {
	c.address.mu.Lock()
	delete(c.address.conns, c)
	c.address.mu.Unlock()
	return c.Conn.Close()
}

// BeforeConnect is for [pgxpool.Config.BeforeConnect]: it directs a new connection to the primary. If no request was
// admitted yet, it waits as [Watch.Admit] does. Its error is that of Admit or of Config.BeforeConnect.
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
	case !up: // requests wait in Admit, where they can move to another host
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
		return noCredentialsError{err}
	}
	return nil
}

// check records the server of a new connection. If the host has several addresses, it refuses a server that is no longer
// the primary.
func (w *Watch) check(ctx context.Context, conn *pgconn.PgConn) error {
	r, err := serverrole.Read(ctx, conn)
	if err != nil {
		return err
	}
	if c := ConnOf(conn.Conn()); c != nil && r.Server != "" {
		c.server.Store(&r.Server)
	}
	if !w.several {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfit(r)
}
