package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// ErrSilent says that a host stopped answering: a session waited for it, and another connection got no answer either.
var ErrSilent = errors.New("the host does not answer any more")

// silentError is a timeout: of another error that ends a read, pgx says no more than that the connection is closed.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }
func (silentError) Timeout() bool   { return true }
func (silentError) Temporary() bool { return false }

// keepAlive has the kernel end a connection to a machine that is gone after 35 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}

// askFactor is how many times as long as connect_timeout another connection may take to be answered. With the default it
// is longer than the 120 s after which PgBouncer refuses a client that waits for a server.
const askFactor = 5

// lookout finds out that the host of one session is silent. A statement may take as long as it does, so each time nothing
// has come for limit, another connection to the same address runs a statement that takes no time. Any answer counts,
// an error too. It is safe for concurrent use.
type lookout struct {
	limit time.Duration

	mu  sync.Mutex
	ask func(ctx context.Context) error // nil until the session is open: connect_timeout limits what comes before
}

// attend has the session that is opened with a config watched. [lookout.opened] starts it.
func (l *logins) attend(c *pgx.ConnConfig) *lookout {
	o := &lookout{limit: c.ConnectTimeout}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetKeepAliveConfig(keepAlive) // without it the other connection finds out
		}
		return o.watch(conn), nil
	}
	return o
}

// opened says how to ask the host of a session: with its address and the credentials that it accepted.
func (o *lookout) opened(l *logins, c *pgx.ConnConfig, conn *pgconn.PgConn) {
	to, err := l.names.of(&c.Config, conn.Conn())
	if err != nil {
		return // the address is unknown
	}
	host, used := l.host.At(to.host, to.port), l.sent.accepted()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ask = func(ctx context.Context) error { return ask(ctx, host, used) }
}

// ask connects to a host that has one address, and runs a statement. The error is one of waiting in vain: whatever
// else comes of it, something there answered, or the host's DSN cannot be read now.
func ask(ctx context.Context, host shards.Host, as shards.Credentials) error {
	pool, err := parse(host)
	if err != nil {
		return nil //nolint:nilerr // it is not about the host
	}
	config := &pool.ConnConfig.Config
	config.User, config.Password = as.User, as.Password
	config.ValidateConnect, config.ConnectTimeout = nil, 0
	config.RuntimeParams["application_name"] = "kiloshard: does the host answer?"
	var open atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if open.Load() {
			return nil, net.ErrClosed // there is nothing to cancel
		}
		return dial(ctx, network, addr)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err == nil {
		open.Store(true)
		if _, err = conn.Exec(ctx, "select 1").ReadAll(); err != nil {
			_ = conn.Conn().Close() // pgx would wait for the host
		}
		_ = conn.Close(ctx) // it has done what it was for
		<-conn.CleanupDone()
	}
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() || pgconn.Timeout(err) {
		return fmt.Errorf("another connection to %s:%d was not answered", config.Host, config.Port)
	}
	return nil
}

// answered reports whether the host answers another connection.
func (o *lookout) answered(ctx context.Context) error {
	o.mu.Lock()
	ask := o.ask
	o.mu.Unlock()
	if ask == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFactor*o.limit)
	defer cancel()
	return ask(ctx)
}

func (o *lookout) watch(conn net.Conn) *watched {
	w := &watched{Conn: conn, of: o}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// watched is a connection whose reads end when its host is silent.
type watched struct {
	net.Conn
	of   *lookout
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	asks sync.WaitGroup

	mu     sync.Mutex
	reads  int   // begun and ended: odd while one is under way
	why    error // it was ended
	closed bool
}

// Read reads as the connection does. The error is [ErrSilent] once the host is.
func (w *watched) Read(p []byte) (int, error) {
	w.mu.Lock()
	w.reads++
	this := w.reads
	w.mu.Unlock()
	timer := time.AfterFunc(w.of.limit, func() { w.look(this) })
	n, err := w.Conn.Read(p)
	timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return n, w.reason(err)
}

// Write writes as the connection does. One that a silent host holds up ends with the read beside it.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	return n, w.reason(err)
}

func (w *watched) reason(err error) error {
	if err != nil && w.why != nil {
		return w.why
	}
	return err
}

// Close closes the connection, and waits until nobody asks about its host.
func (w *watched) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	err := w.Conn.Close()
	w.asks.Wait()
	return err
}

// look asks about the host for as long as a read is under way, and ends the connection when the host is silent.
func (w *watched) look(read int) {
	w.mu.Lock()
	if w.closed || w.reads != read {
		w.mu.Unlock()
		return
	}
	w.asks.Add(1)
	w.mu.Unlock()
	defer w.asks.Done()
	for w.under(read) {
		if err := w.of.answered(w.ctx); err != nil {
			w.end(read, silentError{fmt.Errorf("%w: nothing came for %s, and %w in %s", ErrSilent, w.of.limit, err, askFactor*w.of.limit)})
			return
		}
		select {
		case <-time.After(w.of.limit):
		case <-w.ctx.Done():
		}
	}
}

// under reports whether a read is still under way.
func (w *watched) under(read int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads == read && !w.closed
}

func (w *watched) end(read int, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reads == read && !w.closed {
		w.why = why
		_ = w.Conn.Close() // it has failed anyway
	}
}
