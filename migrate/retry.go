package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// lockNotAvailable is the SQLSTATE of a statement that waited for a lock for longer than lock_timeout.
const lockNotAvailable = "55P03"

// firstPause is the mean pause before the first retry of a shard; it doubles with each retry.
const firstPause = 100 * time.Millisecond

// withRetries takes one shard to the target, and retries if it did not get a lock in time: all other sessions wait behind a
// session that waits for a lock, so many short waits are better than a long one. It also retries a file that collided with
// others; see [collided].
func (r *run) withRetries(ctx context.Context, s *session, n shards.Number) error {
	began, from := time.Now(), r.shardVersions[n]
	r.begin(s, n)
	defer r.end(n)
	interrupted := fanout.Interrupted(ctx)
	at := from
	for attempt := 1; ; attempt++ {
		var failed *file
		var err error
		at, failed, err = r.shard(ctx, s, n, at)
		if err == nil {
			r.tell(ShardDone, s, n, from, at, began, nil)
			return nil
		}
		again := !s.conn.IsClosed() && !errors.Is(err, ErrTransactionEnded) &&
			(waitedInVain(err) && r.cfg.LockTimeout > 0 || collided(err) && !(failed != nil && failed.disableTx))
		if again && attempt == 1 && r.cfg.Retries > 0 && collided(err) { // the other one has ended
			r.again(s, n, attempt, err, "")
			continue
		}
		if again && closed(interrupted) {
			err = fmt.Errorf("%w, and not tried again: %w", fanout.ErrInterrupted, err)
			attempt = r.cfg.Retries + 1
		}
		if attempt > r.cfg.Retries || !again {
			if waitedInVain(err) && !s.conn.IsClosed() {
				err = fmt.Errorf("%w%s", err, s.blockers(ctx, r.cfg.Map.Schema(n)))
			}
			if failed != nil {
				r.enterFailure(ctx, s, n, at, *failed, err)
			}
			r.tell(ShardFailed, s, n, from, at, began, err)
			return err
		}
		r.again(s, n, attempt, err, s.blockers(ctx, r.cfg.Map.Schema(n)))
		pause := firstPause << (attempt - 1)
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-interrupted:
			err = fmt.Errorf("%w, and not tried again: %w%s", fanout.ErrInterrupted, err, s.blockers(ctx, r.cfg.Map.Schema(n)))
			if failed != nil {
				r.enterFailure(ctx, s, n, at, *failed, err)
			}
			r.tell(ShardFailed, s, n, from, at, began, err)
			return err
		}
	}
}

// again counts an attempt that failed and is followed by another one.
func (r *run) again(s *session, n shards.Number, attempt int, err error, blockers string) {
	r.triedAgain.Add(1)
	r.events.send(Event{Kind: ShardRetry, Host: s.host.Name, Shard: n, Attempt: attempt, Err: err, Blockers: blockers})
}

func (r *run) tell(kind EventKind, s *session, n shards.Number, from, at shardVersion, began time.Time, err error) {
	r.events.send(Event{
		Kind: kind, Host: s.host.Name, Shard: n, From: from.version, To: at.version, Took: time.Since(began), Err: err,
	})
}

func waitedInVain(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// collided reports whether a transaction lost against another one by chance, so that it may go through if it runs again: a
// deadlock, a serialization failure, or two that write the same row of a catalog, as two GRANTs on one schema do. Postgres
// has no code of its own for the last kind, and does not translate its text.
func collided(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40P01", "40001":
		return true
	case "XX000":
		return pg.Message == "tuple concurrently updated" || pg.Message == "tuple concurrently deleted"
	case "23505":
		return pg.SchemaName == "pg_catalog"
	}
	return false
}

// blockers describes the other sessions that hold locks in a schema, or that keep others from writing Kiloshard's tables, as
// far as the role may see them.
func (s *session) blockers(ctx context.Context, schema string) string {
	query := fmt.Sprintf(`
		select coalesce('; locks there are held by ' || string_agg(held, ', '), '')
		from (
			select distinct format('process %%s (%%s, %%s for %%s s): %%s', a.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
				a.state, round(extract(epoch from clock_timestamp() - a.xact_start)), left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)) as held
			from pg_catalog.pg_locks l
			join pg_catalog.pg_class c on c.oid = l.relation and (c.relnamespace = to_regnamespace('%s') or c.relnamespace = to_regnamespace('kiloshard')
				and c.relname in ('ledger', 'moves') and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
			join pg_catalog.pg_stat_activity a on a.pid = l.pid
			where l.granted and l.pid <> pg_backend_pid() and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
		) as holders`, schema)
	found, err := s.value(ctx, query)
	if err != nil {
		return ""
	}
	return found
}
