package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrBusy says that another [Create] or [Upgrade] is running on a host.
var ErrBusy = errors.New("another create, upgrade or grant is at work")

// The locks that a Create or Upgrade holds on each host, for the length of a session there: that of [sql.CreateLock], which
// only its owner can take, and an advisory lock of [sql.LockClass] and this key, for a host that does not have the table yet.
// Any role can take the advisory lock, so it counts only if its holder may create shards.
const hostLock = 1

// lockPoll is the time between two attempts to get a host's lock.
const lockPoll = 100 * time.Millisecond

// lock takes the lock of each host, one after the other in the order of their names, so that two programs do not wait
// for each other. The locks end with the sessions. After wait the error is [ErrBusy], which names the holder.
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
		var err error
		if s.locks[i], err = s.open(ctx, s.hosts[i]); err == nil {
			err = lockHost(ctx, s.locks[i], deadline, wait)
		}
		if err != nil {
			return &shards.HostError{Host: s.hosts[i].Name, Err: err}
		}
	}
	return nil
}

func lockHost(ctx context.Context, conn *pgx.Conn, deadline time.Time, wait time.Duration) error {
	const query = `SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0` // the session is idle while other sessions work
	if _, err := conn.PgConn().Exec(ctx, query).ReadAll(); err != nil {
		return err
	}
	for {
		if got, err := tryHost(ctx, conn); got || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w%s; gave up after %v", ErrBusy, lockHolder(ctx, conn), wait)
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAsk)
			defer cancel()
			return fmt.Errorf("%w while it waited: %w%s", context.Cause(ctx), ErrBusy, lockHolder(asking, conn))
		}
	}
}

// tryHost takes the host's locks if they are free. It finishes even if ctx ends, so that the session can still report the
// holder.
func tryHost(ctx context.Context, conn *pgx.Conn) (got bool, err error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAsk)
	defer cancel()
	_, err = conn.PgConn().Exec(asking, "BEGIN; LOCK TABLE "+sql.CreateLock+" IN SHARE UPDATE EXCLUSIVE MODE NOWAIT").ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if _, err := conn.PgConn().Exec(asking, "ROLLBACK").ReadAll(); err != nil || pg.Code == "55P03" {
			return false, err
		}
		err = nil // without the table, or the privilege, the advisory lock is enough; later steps report the cause
	}
	if err == nil {
		query := `SELECT pg_try_advisory_lock($1, $2) OR NOT EXISTS (` + advisoryHolders + `)`
		err = conn.QueryRow(asking, query, sql.LockClass, hostLock).Scan(&got)
	}
	if err == nil && !got {
		_, err = conn.PgConn().Exec(asking, "ROLLBACK").ReadAll()
	}
	return got, err
}

// lockAsk limits the query for the lock's holder after the wait has ended.
const lockAsk = 30 * time.Second

// advisoryHolders finds the sessions that hold the host's advisory lock and may create shards.
const advisoryHolders = `
	SELECT format('process %s, role %s from %s, since %s', l.pid, a.usename,
		coalesce(host(a.client_addr), 'a local socket'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
	FROM pg_locks l
	JOIN pg_stat_activity a ON a.pid = l.pid AND a.datid = l.database AND a.datname = current_database()
	WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid::bigint = $1 AND l.objid::bigint = $2
		AND coalesce(has_schema_privilege(a.usesysid, to_regnamespace('kiloshard')::oid, 'CREATE'), has_database_privilege(a.usesysid, a.datid, 'CREATE'))`

// lockHolder returns the holder of one of the host's locks; empty if unknown.
func lockHolder(ctx context.Context, conn *pgx.Conn) string {
	var holder string
	if conn.QueryRow(ctx, sql.TableHolder(sql.CreateLock)).Scan(&holder) == nil {
		return ": " + holder
	}
	if conn.QueryRow(ctx, advisoryHolders, sql.LockClass, hostLock).Scan(&holder) == nil {
		return ": " + holder
	}
	return "" // it was just released, or the role may not see it
}
