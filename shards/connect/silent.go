package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrSilent says that a host does not answer any more: neither in a session that is there, nor a new one.
var ErrSilent = errors.New("the host does not answer any more")

// How soon the system of this machine notices that the other one is gone, whatever Postgres does there.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}

// lookout looks after one session, whose statements may run for long: migrations, and those that wait for a lock. When nothing
// has come for connect_timeout, it opens another connection to the same address. If that takes as long as well, or Postgres
// says there that the session is idle, twice in a row, then its answer will not come, and the session ends with [ErrSilent].
type lookout struct {
	limit time.Duration
	try   func(ctx context.Context, pid uint32) (idle bool, err error)

	mu  sync.Mutex
	pid uint32 // of the session; 0 before it is open, when connect_timeout counts
}

// attend has the session that is made with a config looked after.
func (l *logins) attend(c *pgx.ConnConfig) *lookout {
	o := &lookout{limit: c.ConnectTimeout}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetKeepAliveConfig(keepAlive) // without it the other connection tells, later
		}
		return o.watch(conn), nil
	}
	return o
}

// opened says which session it is.
func (o *lookout) opened(l *logins, c *pgx.ConnConfig, conn *pgconn.PgConn) {
	to, err := l.names.of(&c.Config, conn.Conn())
	if err != nil {
		return
	}
	beside := &logins{host: l.host.At(to.host, to.port)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pid = conn.PID()
	o.try = func(ctx context.Context, pid uint32) (bool, error) {
		config, err := beside.config(ctx, func(c *pgx.ConnConfig) { c.ValidateConnect = nil })
		if err != nil {
			return false, nil //nolint:nilerr // that is not about the host
		}
		other, err := pgconn.ConnectConfig(ctx, &config.Config)
		if err != nil {
			err = beside.explain(err)
			if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) { // it answers
				err = nil
			}
			return false, err
		}
		defer func() { _ = other.Close(ctx) }()
		const query = "select 1 from pg_catalog.pg_stat_activity a where a.pid operator(pg_catalog.=) %d and a.state operator(pg_catalog.=) 'idle'"
		results, err := other.Exec(ctx, fmt.Sprintf(query, pid)).ReadAll()
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) { // a pooler's own console, say
			return false, nil
		}
		return err == nil && len(results) > 0 && len(results[0].Rows) > 0, err
	}
}

// silentError is a timeout to pgx, which has no words for other errors of a read that it did not expect.
type silentError struct{ err error }

func (e *silentError) Error() string   { return e.err.Error() }
func (e *silentError) Unwrap() error   { return e.err }
func (e *silentError) Timeout() bool   { return true }
func (e *silentError) Temporary() bool { return false }

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

// Read reads as the connection does. Its error is [ErrSilent] once the host is.
func (w *watched) Read(p []byte) (int, error) {
	w.mu.Lock()
	w.reads++
	this := w.reads
	w.mu.Unlock()
	timer := time.AfterFunc(w.of.limit, func() { w.ask(this) })
	n, err := w.Conn.Read(p)
	timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if err != nil && w.why != nil {
		err = w.why
	}
	return n, err
}

// Close closes the connection, and waits until nobody asks about it.
func (w *watched) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	err := w.Conn.Close()
	w.asks.Wait()
	return err
}

// ask asks after the host as long as a read is under way.
func (w *watched) ask(read int) {
	w.mu.Lock()
	if w.closed || w.reads != read {
		w.mu.Unlock()
		return
	}
	w.asks.Add(1)
	w.mu.Unlock()
	defer w.asks.Done()
	for idle := 0; w.under(read); {
		found, err := w.of.asked(w.ctx)
		if idle++; !found {
			idle = 0
		}
		if err != nil && w.ctx.Err() == nil {
			w.end(read, &silentError{fmt.Errorf("%w: nothing came for %s, and another connection failed: %w", ErrSilent, w.of.limit, err)})
			return
		}
		if idle == 2 {
			w.end(read, &silentError{fmt.Errorf("%w: nothing came, and the server takes the session for idle: the answer was lost", ErrSilent)})
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
	if w.reads == read {
		w.why = why
		_ = w.Conn.Close()
	}
}

// asked makes another connection.
func (o *lookout) asked(ctx context.Context) (idle bool, err error) {
	o.mu.Lock()
	pid, try := o.pid, o.try
	o.mu.Unlock()
	if try == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	return try(ctx, pid)
}
