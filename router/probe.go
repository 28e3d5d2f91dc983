package router

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// news is what a probe has found.
type news int

const (
	noNews     news = iota
	newsRole        // it has answered, and said what it is
	newsAlive       // nothing shows that it is down, and it does not say what it is: it lets nobody in, or is slow
	newsGone        // there is no server, or one that is starting or stopping
	newsSilent      // nothing came
)

// report is what came of a probe.
type report struct {
	news  news
	role  role // if it answered
	err   error
	asked time.Time
	ended time.Time
	since time.Time // when the first of several reports in a row was asked for that say the same of the role
}

// role is what a server says of itself.
type role struct {
	recovery bool // it is a standby, or not yet a primary
	readOnly bool // its transactions are, unless they say otherwise
	timeline uint32
	system   string
}

// errSilent says why a host is down that does not answer.
var errSilent = errors.New("nothing came from it for as long as it may be silent")

// askRole asks a server for its role. A primary's timeline is that of what it writes: the one of pg_control_checkpoint is
// out of date until the first checkpoint after a promotion. Any user may call these functions unless they were revoked.
func askRole(ctx context.Context, conn *pgconn.PgConn) (r role, err error) {
	const plain = `select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'`
	const full = plain + `, case when not pg_catalog.pg_is_in_recovery() then
	pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) end,
(pg_catalog.pg_control_system()).system_identifier`
	results, err := conn.Exec(ctx, full).ReadAll()
	if code := sqlState(err); code == "42501" || code == "55000" { // the latter of a server that has just been promoted
		results, err = conn.Exec(ctx, plain).ReadAll()
	}
	if err != nil {
		return r, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return r, errNoAnswer
	}
	row := results[0].Rows[0]
	r.recovery, r.readOnly = string(row[0]) == "t", string(row[1]) == "t"
	if len(row) > 2 {
		timeline, _ := strconv.ParseUint(string(row[2]), 16, 32) // empty for a standby
		r.timeline, r.system = uint32(timeline), string(row[3])
	}
	return r, nil
}

// probeConn is a connection of a prober's own.
type probeConn struct {
	*pgconn.PgConn
	wire *probeWire
}

func (c *probeConn) close() {
	if c != nil {
		_ = c.wire.Close()
		<-c.end()
	}
}

// end has pgx see that the connection is closed, so that it leaves nothing behind.
func (c *probeConn) end() <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_ = c.Close(ctx) // whatever it says, the connection is closed
	return c.CleanupDone()
}

// probeWire takes note that something came.
type probeWire struct {
	net.Conn
	address *address
}

func (w *probeWire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.address.probes.Add(1)
	}
	return n, err
}

// prober probes one address. It has a connection of its own, so that what the callers do does not count.
type prober struct {
	*watch
	at   *address
	conn *probeConn // kept from one probe to the next; nil if there is none

	asking atomic.Int64 // attempts that have what they need to ask, and no answer yet
}

// errLate is what a connection of a probe gets that is over.
var errLate = errors.New("the probe is over")

// connect makes a connection to the address, as one of several attempts. ctx ends it.
func (p *prober) connect(ctx context.Context, attempt int) (*probeConn, error) {
	config := p.config.Copy()
	if p.before != nil {
		if err := p.before(ctx, config); err != nil {
			return nil, err
		}
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
		if n := len(ips); n > 1 { // if one of them is silent, the next attempt begins with the next one
			ips = slices.Concat(ips[attempt%n:], ips[:attempt%n])
		}
		return ips, err
	}
	var mu sync.Mutex
	var last *probeWire
	over := false
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		late := over
		mu.Unlock()
		if late {
			return nil, errLate // pgx asks a server to cancel what it broke off
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		last = &probeWire{conn, p.at}
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

// notAskedError says that an address could not be asked, for want of credentials: nothing is known of it.
type notAskedError struct{ error }

func (e notAskedError) Unwrap() error { return e.error }

// try asks once, on a connection that was kept or on a new one. It returns the connection if it can be used again.
func (p *prober) try(ctx context.Context, conn *probeConn, attempt int) (*probeConn, report) {
	if conn == nil {
		err := p.host.login.Try(ctx, func(ctx context.Context) (err error) {
			conn, err = p.connect(ctx, attempt)
			return err
		})
		if err != nil {
			return nil, report{news: newsOf(err), err: err}
		}
	} else {
		p.asking.Add(1)
	}
	defer p.asking.Add(-1)
	stop := context.AfterFunc(ctx, func() { _ = conn.wire.Close() })
	r, err := askRole(context.Background(), conn.PgConn) // that is what ends it
	if err != nil || !stop() {
		conn.close()
		return nil, report{news: newsOf(err), err: err}
	}
	return conn, report{news: newsRole, role: r}
}

// newsOf returns what an error says of a server that was probed.
func newsOf(err error) news {
	var pgErr *pgconn.PgError
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.As(err, new(notAskedError)):
		return newsAlive
	case errors.As(err, &pgErr):
		if pgErr.Code == "57P03" {
			return newsGone
		}
		return newsAlive
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, net.ErrClosed):
		return newsSilent
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return newsGone
		}
		return newsSilent // nothing is known of the server
	case errors.As(err, &netErr) && netErr.Timeout():
		return newsSilent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(*net.OpError)), errors.As(err, new(syscall.Errno)):
		return newsGone
	}
	return newsAlive // such as one whose certificate is not trusted
}

// refusedAt tells whether an error says that nobody listens there.
func refusedAt(err error) bool {
	if code := sqlState(err); code != "" { // at one of the addresses that a name stands for
		return code == "57P03"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// broken tells whether a probe was broken off, which may have been meant for its connection alone, or been the last moment
// of a server, or of a proxy.
func broken(r report) bool {
	code := sqlState(r.err)
	return r.news == newsGone && !refusedAt(r.err) || code == "57P01" || code == "57P02"
}

// trial is one attempt of a probe.
type trial struct {
	conn *probeConn
	report
	kept bool
}

// probe asks the address, first on the connection that was kept, and on a new one each step that no answer has come, as
// often as said. Only when nothing at all has come on any connection, the callers' too, the address is silent. A step
// follows the one before it, so that a pause of this process counts as one at most.
func (p *prober) probe(ctx context.Context, step time.Duration, steps int) (r report) {
	asked, heard := time.Now(), p.at.heard()
	ctx, cancel := context.WithCancel(ctx)
	trials := make(chan trial, 3*steps+3)
	var running sync.WaitGroup
	attempts := 0
	begin := func(conn *probeConn) {
		attempt := attempts
		attempts++
		running.Go(func() {
			next, r := p.try(ctx, conn, attempt)
			trials <- trial{next, r, conn != nil}
		})
	}
	begin(p.conn)
	p.conn = nil
	timer := time.NewTimer(step)
	defer timer.Stop()
	breaks := 0
	for r.news == noNews && ctx.Err() == nil {
		select {
		case t := <-trials:
			switch {
			case t.kept && t.news != newsRole: // it may have been ended for itself
				begin(nil)
			case breaks < questions && broken(t.report):
				breaks++
				begin(nil)
			case t.news != newsSilent:
				r, p.conn = t.report, t.conn
			}
		case <-timer.C:
			if p.asking.Load() == 0 { // as long as credentials are waited for, there is no silence
				timer.Reset(step)
				continue
			}
			if steps--; steps > 0 {
				begin(nil)
				timer.Reset(step)
				continue
			}
			if r = (report{news: newsSilent, err: errSilent}); p.at.heard() != heard {
				r.news = newsAlive
			}
		case <-ctx.Done():
		}
	}
	cancel()
	running.Wait()
	close(trials)
	for t := range trials {
		t.conn.close()
	}
	r.asked, r.ended = asked, time.Now()
	return r
}

// rest closes the connection that was kept.
func (p *prober) rest() {
	p.conn.close()
	p.conn = nil
}
