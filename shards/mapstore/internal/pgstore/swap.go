package pgstore

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
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// channel is notified of each new version, with the cluster's name.
const channel = "kiloshard_maps"

// Swap makes the version that next proposes the current one, if that has number from.
//
// It inserts the row in one statement. If the answer is lost, it inserts the row again under the same attempt until ctx
// ends, so that the outcome is unknown only while the database is unreachable.
func (s *Store) Swap(ctx context.Context, from int, next backend.Propose) (*backend.Version, error) {
	if s.login.Several() { // another address may have become the primary
		s.pool.Reset()
	}
	c := newChange(s, from, next)
	var pause backend.Backoff
	for {
		v, again, err := c.try(ctx)
		if err == nil {
			return v, nil
		}
		if again && (c.sent || isBroken(err)) {
			if isBroken(err) {
				s.pool.Reset()
			}
			if pause.Wait(ctx) {
				continue
			}
		}
		if c.sent && !errors.As(err, new(*backend.ConflictError)) {
			return nil, fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
		}
		return nil, err
	}
}

// change is one call of Swap.
type change struct {
	store   *Store
	attempt string // identifies its row
	from    int
	next    backend.Propose
	sent    bool // a statement was sent and not answered
}

func newChange(s *Store, from int, next backend.Propose) *change {
	return &change{store: s, attempt: rand.Text(), from: from, next: next}
}

// try makes the change if it is not made yet. again reports whether another attempt may succeed soon.
func (c *change) try(ctx context.Context) (v *backend.Version, again bool, err error) {
	s := c.store
	r, err := first(s.read(ctx, latest, s.cfg.Cluster))
	if err != nil {
		return s.attemptFailed(err)
	}
	if r.Version != c.from {
		return c.lost(ctx)
	}
	if v, err = c.next(s.version(r)); err != nil {
		return nil, false, err
	}
	if err := s.prepare(ctx); err != nil {
		return s.attemptFailed(err)
	}
	if v.At, err = c.insert(ctx, v, "commit"); isMissing(err) {
		if err := s.install(ctx); err != nil {
			return s.attemptFailed(err)
		}
		v.At, err = c.insert(ctx, v, "commit")
	}
	switch {
	case err == nil:
		return v, false, nil
	case isLost(err) || errors.Is(err, pgx.ErrNoRows):
		return c.lost(ctx)
	}
	if isUnknown(err) {
		c.sent = true
	}
	return s.attemptFailed(err)
}

// attemptFailed returns the results of an attempt that a database error ended.
func (s *Store) attemptFailed(err error) (v *backend.Version, again bool, named error) {
	return nil, isPassing(err), s.failed(err)
}

// lost finds out which change won: another one, or this one if an earlier attempt made it and its answer was lost.
func (c *change) lost(ctx context.Context) (v *backend.Version, again bool, err error) {
	s := c.store
	if c.sent {
		const query = `select ` + columns + ` from kiloshard.maps where cluster = $1 and follows = $2`
		r, err := first(s.read(ctx, query, s.cfg.Cluster, c.from))
		if err != nil {
			return s.attemptFailed(err)
		}
		if r.Attempt == c.attempt {
			return s.version(r), false, nil
		}
	}
	r, err := first(s.read(ctx, latest, s.cfg.Cluster))
	if err != nil {
		return s.attemptFailed(err)
	}
	return nil, false, &backend.ConflictError{Found: r.Version}
}

// insert inserts the row in a transaction of its own, in one round trip, and notifies watchers when it commits. end is
// commit, or rollback to try it. It turns synchronous_commit on, since a server that is killed loses a commit that does
// not wait for the disk.
func (c *change) insert(ctx context.Context, v *backend.Version, end string) (at time.Time, err error) {
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
	batch.Queue(query, c.store.cfg.Cluster, c.from, v.Number, string(v.Document), v.By, v.Why, c.attempt).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at, &notified, &synchronous) })
	batch.Queue(end)
	err = c.store.withConn(ctx, func(conn *pgxpool.Conn) error {
		err := conn.SendBatch(ctx, &batch).Close()
		if pgconn.SafeToRetry(err) { // a batch says so when the connection is lost later, too
			return errors.New(err.Error())
		}
		return err
	})
	return at.UTC(), err
}
