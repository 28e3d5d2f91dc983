package primary

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
)

// probeConn is a prober's own connection.
type probeConn struct {
	*pgconn.PgConn
	socket *probeSocket
}

func (c *probeConn) close() {
	if c != nil {
		_ = c.socket.Close()
		<-c.end()
	}
}

// end closes the connection in pgx and returns a channel that is closed when pgx has cleaned up.
func (c *probeConn) end() <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = c.Close(ctx) // after an error too, the connection is closed
	return c.CleanupDone()
}

// probeSocket counts reads that return data.
type probeSocket struct {
	net.Conn
	address *address
}

func (s *probeSocket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.address.probes.Add(1)
	}
	return n, err
}

// errLate is the error of a dial for a probe that has ended.
var errLate = errors.New("the probe is over")

// connect makes a connection to the address, as one of several attempts. ctx ends it.
func (p *prober) connect(ctx context.Context, attempt int) (*probeConn, error) {
	config := p.probing.Copy()
	if err := p.prepare(ctx, config); err != nil {
		return nil, err
	}
	p.asking.Add(1)
	if p.several {
		p.at.only(config)
	}
	config.ValidateConnect, config.Config.AfterConnect = nil, nil
	config.OnNotice, config.OnNotification = nil, nil
	lookup := config.LookupFunc
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		ips, err := lookup(ctx, host)
		if n := len(ips); n > 1 { // each attempt starts with another address, in case one is silent
			ips = slices.Concat(ips[attempt%n:], ips[:attempt%n])
		}
		return ips, err
	}
	var mu sync.Mutex
	var last *probeSocket
	over := false
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		late := over
		mu.Unlock()
		if late {
			return nil, errLate // pgx sends a cancel request for a canceled query
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		p.dialed.Add(1)
		mu.Lock()
		defer mu.Unlock()
		last = &probeSocket{conn, p.at}
		return last, nil
	}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	mu.Lock()
	defer mu.Unlock()
	over = true
	if err != nil {
		p.asking.Add(-1)
		return nil, err
	}
	return &probeConn{conn, last}, nil
}

// try asks for the role once, on the given connection or, if that is nil, on a new one. It returns the connection if it can
// be used again.
func (p *prober) try(ctx context.Context, conn *probeConn, attempt int) (*probeConn, report) {
	if conn == nil {
		err := p.Try(ctx, func(ctx context.Context) (err error) {
			conn, err = p.connect(ctx, attempt)
			return err
		})
		if err != nil {
			return nil, report{state: stateOf(err), err: err}
		}
	} else {
		p.asking.Add(1)
	}
	defer p.asking.Add(-1)
	stop := context.AfterFunc(ctx, func() { _ = conn.socket.Close() })
	r, err := serverrole.Read(context.Background(), conn.PgConn) // closing the socket ends it
	if err != nil || !stop() {
		conn.close()
		return nil, report{state: stateOf(err), err: err}
	}
	return conn, report{state: answered, role: r}
}
