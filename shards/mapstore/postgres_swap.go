package mapstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// channel is notified of each new version, with the cluster's name.
const channel = "kiloshard_maps"

// Swap implements [Store]. The insert is one statement. If its answer is lost it is sent again under the same name, until the
// limit: so its outcome is unknown only while the database is unreachable.
func (s *postgresStore) Swap(ctx context.Context, from int, next Change) (Entry, error) {
	if err := s.ready(ctx); err != nil {
		return Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	if s.login.Several() { // another one may have become the primary
		s.pool.Reset()
	}
	c := change{store: s, attempt: rand.Text(), from: from, next: next}
	var pause backoff
	for {
		e, again, err := c.try(ctx)
		if err == nil {
			return e, nil
		}
		if again && (c.sent || isBroken(err)) {
			if isBroken(err) {
				s.pool.Reset()
			}
			if pause.wait(ctx) {
				continue
			}
		}
		if conflict := (*ConflictError)(nil); c.sent && !errors.As(err, &conflict) {
			return Entry{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		return Entry{}, err
	}
}

// change is one call of Swap.
type change struct {
	store   *postgresStore
	attempt string // identifies its row
	from    int
	next    Change
	sent    bool // a statement was sent and not answered
}

// try makes the change if it is not made yet. again reports whether another attempt may succeed in a moment.
func (c *change) try(ctx context.Context) (e Entry, again bool, err error) {
	s := c.store
	r, err := c.latest(ctx)
	if err != nil {
		return Entry{}, isPassing(err), s.failed(err)
	}
	if r.Version != c.from {
		return c.lost(ctx)
	}
	var now Entry
	if r.Version > 0 {
		if now, err = s.entry(r, s.docs.keepUnset()); err != nil {
			return Entry{}, false, err
		}
	}
	made, text, err := s.docs.check(now, c.next)
	if err != nil {
		return Entry{}, false, err
	}
	if err := s.prepare(ctx); err != nil {
		return Entry{}, isPassing(err), s.failed(err)
	}
	if made.At, err = c.insert(ctx, made.version(), text, "commit"); isMissing(err) {
		if err := s.install(ctx); err != nil {
			return Entry{}, isPassing(err), s.failed(err)
		}
		made.At, err = c.insert(ctx, made.version(), text, "commit")
	}
	switch {
	case err == nil:
		return made, false, nil
	case isLost(err) || errors.Is(err, pgx.ErrNoRows):
		return c.lost(ctx)
	}
	if isUnknown(err) {
		c.sent = true
	}
	return Entry{}, isPassing(err), s.failed(err)
}

// lost finds out which change won: another one, or this one if it was sent before and its answer was lost.
func (c *change) lost(ctx context.Context) (e Entry, again bool, err error) {
	s := c.store
	if c.sent {
		const query = `select ` + columns + ` from kiloshard.maps where cluster = $1 and follows = $2`
		var r row
		err := s.on(ctx, func(conn *pgxpool.Conn) (err error) {
			r, err = one(ctx, conn, query, s.cluster, c.from)
			return err
		})
		if err != nil {
			return Entry{}, isPassing(err), s.failed(err)
		}
		if r.Attempt == c.attempt {
			e, err := s.entry(r, s.docs.keepUnset())
			return e, false, err
		}
	}
	r, err := c.latest(ctx)
	if err != nil {
		return Entry{}, isPassing(err), s.failed(err)
	}
	return Entry{}, false, &ConflictError{Wanted: c.from, Found: r.Version}
}

// latest returns the newest version.
func (c *change) latest(ctx context.Context) (r row, err error) {
	err = c.store.on(ctx, func(conn *pgxpool.Conn) (err error) {
		r, err = c.store.latest(ctx, conn)
		return err
	})
	return r, err
}

// insert inserts the row in a transaction of its own, in one round trip, and notifies watchers when it is committed. A commit that
// does not wait for the disk would be lost if the server is killed. end is commit, or rollback to try it.
func (c *change) insert(ctx context.Context, version int, text []byte, end string) (at time.Time, err error) {
	const query = `with latest as (
	select coalesce(max(version), 0) as version from kiloshard.maps where cluster = $1
), made as (
	insert into kiloshard.maps (cluster, version, follows, document, made_by, why, attempt)
	select $1, $3, $2, $4, $5, $6, $7 from latest where latest.version = $2
	returning made_at
)
select made_at, pg_catalog.pg_notify('` + channel + `', $1)::text,
	case when pg_catalog.current_setting('synchronous_commit') = 'off' then pg_catalog.set_config('synchronous_commit', 'on', true) end
from made`
	var notified, synchronous *string
	var batch pgx.Batch
	began := func(pgconn.CommandTag) error { return nil } // with it, the first error is the batch's
	batch.Queue(connect.Begin).Exec(began)
	batch.Queue(connect.Local()).Exec(began)
	batch.Queue(query, c.store.cluster, c.from, version, string(text), c.next.By, c.next.Why, c.attempt).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at, &notified, &synchronous) })
	batch.Queue(end)
	err = c.store.on(ctx, func(conn *pgxpool.Conn) error {
		err := conn.SendBatch(ctx, &batch).Close()
		if pgconn.SafeToRetry(err) { // a batch says so when the connection is lost later, too
			return errors.New(err.Error())
		}
		return err
	})
	return at.UTC(), err
}

// install creates the table, or upgrades an older one.
func (s *postgresStore) install(ctx context.Context) error { return s.run(ctx, sql.Maps()) }

// prepare refuses a table that somebody else made, before anything is written to it, and upgrades an older one. After one
// check it stays trusted: only its owner can change it.
func (s *postgresStore) prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	if err := s.run(ctx, sql.RefuseForeign(sql.Ours{DatabaseOwner: true})); err != nil {
		return err
	}
	var isOld bool
	err := s.on(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sql.MapsAreOld()).Scan(&isOld)
	})
	if err == nil && isOld {
		err = s.install(ctx)
	}
	if err == nil {
		s.prepared.Store(true)
	}
	return err
}

// run runs a script in one transaction.
func (s *postgresStore) run(ctx context.Context, script string) error {
	return s.on(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, connect.Begin+"; "+connect.Local()+";\n"+script+";\ncommit", pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
