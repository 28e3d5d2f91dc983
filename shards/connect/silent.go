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

// silentError is a timeout: for other errors of a read, pgx reports only that the connection is closed.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }
func (silentError) Timeout() bool   { return true }
func (silentError) Temporary() bool { return false }

// keepAlive makes the kernel end a connection to a machine that is gone after 35 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}

// askFactor times connect_timeout is the time limit of the other connection. With the default it
// is longer than the 120 s after which PgBouncer refuses a client that waits for a server.
const askFactor = 5

// lookout detects that the host of one session is silent. A statement has no time limit, so each time the session has
// received nothing for limit, another connection to the same address runs a trivial statement. Any answer counts,
// even an error. It is safe for concurrent use.
type lookout struct {
	limit time.Duration

	mu  sync.Mutex
	ask func(ctx context.Context) error // nil until the session is open: connect_timeout limits what comes before
}

// attend watches the session that is opened with a config. [lookout.opened] starts the watch.
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

// opened sets how to reach the host of a session again: at its address, with the credentials that it accepted.
func (o *lookout) opened(l *logins, c *pgx.ConnConfig, conn *pgconn.PgConn) {
	to, err := l.names.of(&c.Config, conn.Conn())
	if err != nil {
		return // the address is unknown
	}
	used := l.sent.accepted()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ask = func(ctx context.Context) error { return ask(ctx, At(l.host, to.host, to.port), used) }
}

// ask connects to a host that has one address, and runs a statement. It returns an error only if nothing answered in
// time: any other failure means that something answered, or that the host's DSN cannot be read now.
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
			_ = conn.Conn().Close() // pgx's own Close would wait for the host
		}
		_ = conn.Close(ctx) // its error does not matter
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

// watched is a connection whose reads fail when its host is silent.
type watched struct {
	net.Conn
	of   *lookout
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	asks sync.WaitGroup

	mu     sync.Mutex
	reads  int   // counts begins and ends: odd while a read is under way
	why    error // why the connection was ended
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

// Write writes as the connection does. If a silent host blocks it, it ends together with the concurrent read.
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

// Close closes the connection, and waits for the check of its host to end.
func (w *watched) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	err := w.Conn.Close()
	w.asks.Wait()
	return err
}

// look checks the host while a read is under way, and ends the connection when the host is silent.
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
