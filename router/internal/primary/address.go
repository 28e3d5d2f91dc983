package primary

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// address is one of the addresses of a host, and the connections to it.
type address struct {
	host      string
	port      uint16
	fallbacks []*pgconn.FallbackConfig // ways to connect to it, such as with and without TLS, from the DSN at the start

	callers atomic.Uint64 // number of reads that returned data, on connections of the owner
	probes  atomic.Uint64 // the same, on connections of probes

	mu    sync.Mutex // guards what follows
	conns map[*Conn]struct{}
	why   error              // why connections are forbidden; nil if they are allowed
	gate  context.Context    // ends when connections are forbidden
	shut  context.CancelFunc // ends gate

	wake chan struct{} // makes the prober probe at once

	// Guarded by Watch.mu.
	last    report    // of the last probe
	rival   bool      // it takes writes although another address is the primary; this was logged
	renew   bool      // the next probe must use a new connection
	renewed time.Time // when the last such probe ended
}

// addressesOf returns the addresses that a connection's config names, each once.
func addressesOf(config *pgx.ConnConfig) (all []*address) {
	for _, f := range fallbacksOf(config) {
		i := slices.IndexFunc(all, func(a *address) bool { return a.reachedBy(f) })
		if i < 0 {
			i = len(all)
			all = append(all, newAddress(f.Host, f.Port))
		}
		all[i].fallbacks = append(all[i].fallbacks, f)
	}
	return all
}

// fallbacksOf returns all ways to connect that a config has, the first one first.
func fallbacksOf(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

func newAddress(host string, port uint16) *address {
	a := &address{host: host, port: port, conns: map[*Conn]struct{}{}, wake: make(chan struct{}, 1)}
	a.gate, a.shut = context.WithCancel(context.Background())
	return a
}

func (a *address) reachedBy(f *pgconn.FallbackConfig) bool {
	return f.Host == a.host && f.Port == a.port
}

// received returns the number of reads that returned data.
func (a *address) received() uint64 { return a.callers.Load() + a.probes.Load() }

// String returns host and port.
func (a *address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// probeNow makes the prober probe at once.
func (a *address) probeNow() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// only restricts a connection to this address. It uses the config's present fallbacks: certificate files may have changed.
func (a *address) only(c *pgx.ConnConfig) {
	all := slices.DeleteFunc(fallbacksOf(c), func(f *pgconn.FallbackConfig) bool { return !a.reachedBy(f) })
	if len(all) == 0 { // the DSN, or the service that it names, has other addresses now
		all = a.fallbacks
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = a.host, a.port, all[0].TLSConfig, all[1:]
}

// open allows connections to be made.
func (a *address) open() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != nil {
		a.why = nil
		a.gate, a.shut = context.WithCancel(context.Background())
	}
}

// bar forbids new connections until open. Existing ones continue.
func (a *address) bar(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		a.shut()
	}
	a.why = why
}

// close closes all connections, including those in use, and forbids new ones until open.
func (a *address) close(why error) {
	a.bar(why)
	a.cut(func(*Conn) bool { return true })
}

// cut closes all matching connections, including those in use, and returns how many it closed.
func (a *address) cut(which func(*Conn) bool) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.conns {
		if which(c) {
			c.cut.Store(true)
			_ = c.Conn.Close() // its user gets the error
			delete(a.conns, c)
			n++
		}
	}
	return n
}

// dial wraps a dial function so that it fails while connections are forbidden.
func (a *address) dial(inner pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		a.mu.Lock()
		why, gate := a.why, a.gate
		a.mu.Unlock()
		if why != nil {
			return nil, why
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(gate, cancel)()
		conn, err := inner(ctx, network, addr)
		if err != nil {
			return nil, a.reason(gate, err)
		}
		c := &Conn{Conn: conn, address: a}
		if s, ok := conn.(syscall.Conn); ok {
			c.socket, _ = s.SyscallConn() // without it the end is seen by the next read or write
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.why != nil {
			_ = conn.Close()
			return nil, a.why
		}
		a.conns[c] = struct{}{}
		return c, nil
	}
}

// errWentDown is the error of a dial during which the host went down and came up again.
var errWentDown = errors.New("the host went down during the dial")

// reason returns why a dial failed.
func (a *address) reason(gate context.Context, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case gate.Err() == nil:
		return err
	case a.why == nil: // it is up again
		return errWentDown
	}
	return a.why
}
