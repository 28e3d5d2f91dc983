package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrBusy says that another [Create] or [Upgrade] is at work on a host.
var ErrBusy = errors.New("another create, upgrade or grant is at work")

// The locks that a Create or Upgrade holds on each host, for the length of a session there: a row of kiloshard.locks that only
// the owner can lock, once that table is there, and an advisory lock of [sql.LockClass] and advisoryLock, for a host on which nothing is
// installed. Anybody can take that one: it counts where its holder may create what a Create does.
const (
	advisoryLock = 1
	rowLock      = -2
)

// lockPoll is the time between two attempts to get a host's lock.
const lockPoll = 100 * time.Millisecond

// lock takes the lock of each host, one after the other in the order of their names, so that two programs do not wait
// for each other. The locks go with the sessions. After wait the error is [ErrBusy] and says who holds the lock.
//
// It polls, since a statement that waits has a snapshot, and a CREATE INDEX CONCURRENTLY elsewhere would wait for that.
func (s *sessions) lock(ctx context.Context, wait time.Duration) error {
	order := make([]int, len(s.hosts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.hosts[a].Name, s.hosts[b].Name) })
	s.locks = make([]*pgx.Conn, len(s.hosts))
	deadline := time.Now().Add(wait)
	for _, i := range order {
		err := s.openLock(ctx, i)
		if err == nil {
			err = lockHost(ctx, s.locks[i], deadline, wait)
		}
		if err != nil {
			return &shards.HostError{Host: s.hosts[i].Name, Err: err}
		}
	}
	return nil
}

// openLock opens the session for a host's locks: a transaction holds them, and others are begun and ended meanwhile.
func (s *sessions) openLock(ctx context.Context, i int) (err error) {
	s.locks[i], err = open(ctx, s.hosts[i])
	return err
}

func lockHost(ctx context.Context, conn *pgx.Conn, deadline time.Time, wait time.Duration) error {
	begin := fmt.Sprintf(`SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
		BEGIN ISOLATION LEVEL READ COMMITTED; SELECT to_regclass('kiloshard.locks') IS NOT NULL AND NOT EXISTS (SELECT FROM (%s) f WHERE kind <> '%s')`,
		sql.Foreign(sql.Ours{}), grant)
	results, err := conn.PgConn().Exec(ctx, begin).ReadAll() // the session is idle while others work
	if err != nil {
		return err
	}
	rows := string(results[len(results)-1].Rows[0][0]) == "t"
	for {
		if got, err := tryHost(ctx, conn, rows); got || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w%s; gave up after %v", ErrBusy, lockHolder(ctx, conn, rows), wait)
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAsk)
			defer cancel()
			return fmt.Errorf("%w while it waited: %w%s", context.Cause(ctx), ErrBusy, lockHolder(asking, conn, rows))
		}
	}
}

// tryHost takes the host's locks if they are free. It ends although ctx has ended, so that an interrupt finds the session able to
// say who holds them.
func tryHost(ctx context.Context, conn *pgx.Conn, rows bool) (got bool, err error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAsk)
	defer cancel()
	if rows {
		tag, err := conn.Exec(asking, `SELECT FROM kiloshard.locks WHERE lock = $1 FOR UPDATE SKIP LOCKED`, rowLock)
		if err != nil || tag.RowsAffected() == 0 {
			return false, err
		}
	}
	err = conn.QueryRow(asking, `SELECT pg_try_advisory_xact_lock($1, $2) OR NOT EXISTS (`+advisoryHolders+`)`, sql.LockClass, advisoryLock).Scan(&got)
	return got, err
}

// lockAsk is how long it may take to find out who holds the lock, once nobody waits for it any more.
const lockAsk = 30 * time.Second

// advisoryHolders are those who have the host's advisory lock and the rights to make shards.
const advisoryHolders = `
	SELECT format('process %s, role %s from %s, since %s', l.pid, a.usename,
		coalesce(host(a.client_addr), 'a local socket'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
	FROM pg_locks l
	JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
	JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid::bigint = $1 AND l.objid::bigint = $2
		AND CASE WHEN to_regnamespace('kiloshard') IS NULL THEN has_database_privilege(a.usesysid, d.oid, 'CREATE')
			ELSE has_schema_privilege(a.usesysid, to_regnamespace('kiloshard'), 'CREATE') END`

// lockHolder says who holds one of the host's locks, as far as it is known.
func lockHolder(ctx context.Context, conn *pgx.Conn, rows bool) string {
	var holder string
	if conn.QueryRow(ctx, advisoryHolders, sql.LockClass, advisoryLock).Scan(&holder) == nil {
		return ": " + holder
	}
	if rows && conn.QueryRow(ctx, sql.LockHolder(rowLock)).Scan(&holder) == nil {
		return ": " + holder
	}
	return "" // it has just let go, or the role may not know
}
