package router

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// address is one of the addresses of a host, and the connections to it.
type address struct {
	host string
	port uint16
	ways []*pgconn.FallbackConfig // to connect to it, such as with TLS and without, as the DSN had them at first

	callers atomic.Uint64 // how many times something came from there, to connections that callers have
	probes  atomic.Uint64 // and to those of probes

	mu    sync.Mutex // guards what follows
	wires map[*wire]struct{}
	why   error              // why no connection may be made; nil if it may
	gate  context.Context    // ends when no connection may be made any more
	shut  context.CancelFunc // ends gate

	// Guarded by watch.mu.
	last  report // of the last probe
	rival bool   // it takes writes beside the primary, which the log has been told of
	kick  chan struct{}
}

// addressesOf returns the addresses that a connection's config names, each once.
func addressesOf(config *pgx.ConnConfig) (all []*address) {
	for _, way := range waysOf(config) {
		i := slices.IndexFunc(all, func(a *address) bool { return a.reachedBy(way) })
		if i < 0 {
			i = len(all)
			all = append(all, newAddress(way.Host, way.Port))
		}
		all[i].ways = append(all[i].ways, way)
	}
	return all
}

// waysOf returns all ways to connect that a config has, the first one first.
func waysOf(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

func newAddress(host string, port uint16) *address {
	a := &address{host: host, port: port, wires: map[*wire]struct{}{}, kick: make(chan struct{}, 1)}
	a.gate, a.shut = context.WithCancel(context.Background())
	return a
}

func (a *address) reachedBy(way *pgconn.FallbackConfig) bool {
	return way.Host == a.host && way.Port == a.port
}

// heard returns how many times something came from there.
func (a *address) heard() uint64 { return a.callers.Load() + a.probes.Load() }

// String returns host and port.
func (a *address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// only has a connection go to this address and to no other, in the ways that the config has for it now: the files of
// certificates may have changed.
func (a *address) only(c *pgx.ConnConfig) {
	ways := slices.DeleteFunc(waysOf(c), func(way *pgconn.FallbackConfig) bool { return !a.reachedBy(way) })
	if len(ways) == 0 { // the DSN, or the service that it names, has other addresses by now
		ways = a.ways
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = a.host, a.port, ways[0].TLSConfig, ways[1:]
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

// bar has no connection made until open. Those that there are go on.
func (a *address) bar(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		a.shut()
	}
	a.why = why
}

// close closes all connections, those in use too, and has none made until open.
func (a *address) close(why error) {
	a.bar(why)
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.wires {
		w.cut.Store(true)
		_ = w.Conn.Close() // whoever uses it sees the error
	}
	clear(a.wires)
}

// dial makes connections by another function, as long as they may be made.
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
		w := &wire{Conn: conn, address: a}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.why != nil {
			_ = conn.Close()
			return nil, a.why
		}
		a.wires[w] = struct{}{}
		return w, nil
	}
}

// errFell says why no connection was made, though the host is up.
var errFell = errors.New("the host was found down while a connection to it was made")

// reason returns why no connection was made.
func (a *address) reason(gate context.Context, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case gate.Err() == nil:
		return err
	case a.why == nil: // it is up again by now
		return errFell
	}
	return a.why
}

// wire is a connection as the network has it.
type wire struct {
	net.Conn
	address *address
	cut     atomic.Bool // closed by somebody else than who uses it
}

// wireOf returns the wire of a connection, nil if something that is not known is around it.
func wireOf(conn net.Conn) *wire {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	w, _ := conn.(*wire)
	return w
}

// Read takes note that something came.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.address.callers.Add(1)
	}
	return n, err
}

// Close may be called more than once.
func (w *wire) Close() error {
	w.address.mu.Lock()
	delete(w.address.wires, w)
	w.address.mu.Unlock()
	return w.Conn.Close()
}
