package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

const (
	// closeLimit is the time limit for closing a connection.
	closeLimit = time.Second
	// minInterval is the least time between two queries. Every role may notify: a flood of notifications must not cause
	// a flood of queries.
	minInterval = 50 * time.Millisecond
	// primaryInterval is how often a listener with several addresses checks which one is the primary.
	primaryInterval = 30 * time.Second
)

// errOtherPrimary says that another address is the primary now.
var errOtherPrimary = errors.New("another address is the primary")

// Follow reports the current version until ctx ends: after each notification, and at the poll interval.
func (s *Store) Follow(ctx context.Context, report backend.Report) {
	l := &listener{Store: s, report: report}
	for {
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errOtherPrimary) {
			continue
		}
		l.report(nil, s.failed(err))
		if !l.pause.Wait(ctx) {
			return
		}
	}
}

// listener is one run of Follow.
type listener struct {
	*Store
	report  backend.Report
	pause   backend.Backoff
	last    row // that was reported
	queried time.Time
}

// listen follows the map on one connection until that breaks.
func (l *listener) listen(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, l.cfg.Limit)
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
	if _, err := conn.Exec(limited, "listen "+channel); err != nil { // before the first query, so that no version is missed
		return err
	}
	checked := time.Now()
	for {
		if err := l.query(ctx, conn); err != nil {
			return err
		}
		l.pause.Reset()
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

// checkPrimary returns errOtherPrimary if the connection leads to another address than that of the newest primary.
func (l *listener) checkPrimary(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Limit)
	defer cancel()
	host, port, err := l.login.Newest(ctx)
	if c := conn.Config(); err == nil && (c.Host != host || c.Port != port) {
		return errOtherPrimary
	}
	return err
}

// query reads the current version, without its document if that is known, and reports it.
func (l *listener) query(ctx context.Context, conn *pgx.Conn) error {
	l.queried = time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Limit)
	defer cancel()
	const query = `select version, case when version = $2 then '' else document end, made_at, made_by, why, attempt, role::text
from kiloshard.maps where cluster = $1 order by version desc limit 1`
	r, err := first(readFrom(ctx, conn, query, l.cfg.Cluster, l.last.Version))
	if err != nil {
		return err
	}
	switch known := r.Version == l.last.Version; {
	case known && r.Attempt == l.last.Attempt:
		r = l.last
	case known: // the database was restored, and has another row of this version
		if r, err = first(readFrom(ctx, conn, latest, l.cfg.Cluster)); err != nil {
			return err
		}
	}
	l.last = r
	l.report(l.version(r), nil)
	return nil
}

// wait waits for a notification of a new version, or the poll interval. Notifications within minInterval of the last
// query are taken together.
func (l *listener) wait(ctx context.Context, conn *pgx.Conn) error {
	end := l.queried.Add(l.cfg.Poll)
	for {
		limited, cancel := context.WithDeadline(ctx, end)
		n, err := conn.WaitForNotification(limited)
		cancel()
		switch {
		case err == nil && n.Payload == l.cfg.Cluster:
			if first := l.queried.Add(minInterval); first.Before(end) {
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
