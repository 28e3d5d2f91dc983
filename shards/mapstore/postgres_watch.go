package mapstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// closeLimit is the time limit for closing a connection.
	closeLimit = time.Second
	// lookInterval is the least time between two queries. Every role may notify: a flood of notifications causes no flood of queries.
	lookInterval = 50 * time.Millisecond
	// primaryInterval is how often a watch with several addresses finds out which one is the primary.
	primaryInterval = 30 * time.Second
)

// errOtherPrimary says that another address is the primary now.
var errOtherPrimary = errors.New("another address is the primary")

// follow reports the map after each notification, and at the poll interval.
func (s *postgresStore) follow(ctx context.Context, report func(Entry, error)) {
	l := &listener{postgresStore: s, report: report}
	for {
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errOtherPrimary) {
			continue
		}
		l.report(Entry{}, s.failed(err))
		if !l.pause.wait(ctx) {
			return
		}
	}
}

// listener is one run of following a control database.
type listener struct {
	*postgresStore
	report func(Entry, error)
	pause  backoff
	last   Entry // reported
	row    row   // of last, without its document
	bad    row   // the last row that was not a map
	looked time.Time
}

// listen follows the map on one connection until that breaks.
func (l *listener) listen(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, l.opts.Limit)
	defer cancel()
	conn, err := l.login.Open(limited, l.pool.Config())
	if err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = conn.Close(limited)
	}()
	if _, err := conn.Exec(limited, "listen "+channel); err != nil {
		return err
	}
	checked := time.Now()
	for { // listening comes first, so that no version is missed
		if err := l.look(ctx, conn); err != nil {
			return err
		}
		l.pause.reset()
		if err := l.wait(ctx, conn); err != nil {
			return err
		}
		if time.Since(checked) > primaryInterval && l.login.Several() {
			if err := l.checkPrimary(ctx, conn); err != nil {
				return err
			}
			checked = time.Now()
		}
	}
}

// checkPrimary returns errOtherPrimary if the connection leads to another address than the newest primary's.
func (l *listener) checkPrimary(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.opts.Limit)
	defer cancel()
	host, port, err := l.login.Newest(ctx)
	if c := conn.Config(); err == nil && (c.Host != host || c.Port != port) {
		return errOtherPrimary
	}
	return err
}

// look queries the map, and reports it.
func (l *listener) look(ctx context.Context, conn *pgx.Conn) error {
	l.looked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.opts.Limit)
	defer cancel()
	// The document is left out if it is known.
	const query = `select version, case when version = $2 then '' else document end, made_at, made_by, why, attempt, role::text
from kiloshard.maps where cluster = $1 order by version desc limit 1`
	known := max(l.last.version(), l.bad.Version)
	r, err := one(ctx, conn, query, l.cluster, known)
	switch {
	case err != nil:
		return err
	case r.Version == 0:
		l.last, l.row, l.bad = Entry{}, row{}, row{}
		l.report(Entry{}, ErrNoMap)
	case l.bad.Version == r.Version && l.bad.Attempt == r.Attempt:
	case l.row.Version == r.Version && l.row.Attempt == r.Attempt:
		l.report(l.last, nil)
	default:
		if r.Version == known { // in another history
			if r, err = l.latest(ctx, conn); err != nil {
				return err
			}
		}
		e, err := l.entry(r, l.docs)
		if err != nil {
			l.bad = r
			l.report(Entry{}, err)
			return nil
		}
		l.last, l.row, l.bad = e, r, row{}
		l.row.Document = ""
		l.report(e, nil)
	}
	return nil
}

// wait waits for a notification of a new version, or the poll interval. Notifications within lookInterval of the last query are taken together.
func (l *listener) wait(ctx context.Context, conn *pgx.Conn) error {
	end := l.looked.Add(l.opts.Poll)
	for {
		limited, cancel := context.WithDeadline(ctx, end)
		n, err := conn.WaitForNotification(limited)
		cancel()
		switch {
		case err == nil && n.Payload == l.cluster:
			if first := l.looked.Add(lookInterval); first.Before(end) {
				end = first
			}
		case err == nil:
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed():
			return nil
		default:
			return err
		}
	}
}
