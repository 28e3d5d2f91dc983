// Package hosts opens sessions to the hosts of a map: to one at a time, to each that is needed, or to all at once.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// Each runs fn with a session to every host of a map at once, and joins the errors as [shards.HostError].
func Each(ctx context.Context, m *shards.Map, fn func(shards.Host, *pgx.Conn) error) error {
	errs := make([]error, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		wg.Go(func() {
			conn, err := session.Open(ctx, host)
			if err != nil {
				errs[i] = err
				return
			}
			defer session.Close(ctx, conn)
			if err := fn(host, conn); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// AnswerLimit is how long a host that may be gone may take to answer.
const AnswerLimit = 10 * time.Second

// Gone returns an error if a host answers, or is about to.
func Gone(ctx context.Context, m *shards.Map, name string) error {
	host, err := Host(m, name)
	if err != nil {
		return err
	}
	probing, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	conn, err := session.Open(probing, host)
	session.Close(ctx, conn)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return fmt.Errorf("%s answers: expected move abort", name)
	case session.Code(err) == "57P03": // it is starting
		return fmt.Errorf("%w: expected a host that is gone, or move abort", err)
	}
	return nil
}
