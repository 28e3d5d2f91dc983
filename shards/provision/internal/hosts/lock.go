package hosts

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

// ErrBusy says that another program holds the lock of a host.
var ErrBusy = errors.New("another create, upgrade or grant is at work")

// A session holds two locks on its host: that of [sql.CreateLock], which only its owner can take, and an advisory lock
// of [sql.LockClass] and advisoryKey, for a host that does not have the table yet. Any role can take the advisory lock,
// so it counts only if its holder may create shards.
const advisoryKey = 1

const (
	lockPoll    = 100 * time.Millisecond // between two attempts to get a host's lock
	holderLimit = 30 * time.Second       // for a query that must finish although ctx has ended
)

// Lock takes the lock of each host in turn, in the order of their names, so that two programs cannot deadlock. The
// locks end with the sessions. After wait the error is [ErrBusy], which names the holder.
//
// Lock polls: a waiting statement has a snapshot, and a CREATE INDEX CONCURRENTLY elsewhere would wait for it.
func (s *Sessions) Lock(ctx context.Context, wait time.Duration) error {
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
	// The session is idle while other sessions work.
	const query = `SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0`
	if _, err := conn.PgConn().Exec(ctx, query).ReadAll(); err != nil {
		return err
	}
	for {
		if locked, err := tryLock(ctx, conn); locked || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w%s; gave up after %v", ErrBusy, lockHolder(ctx, conn), wait)
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderLimit)
			defer cancel()
			return fmt.Errorf("%w%s: %w", ErrBusy, lockHolder(asking, conn), context.Cause(ctx)) // the cause last, for commands to say "interrupted"
		}
	}
}

// tryLock takes the host's locks if they are free. It finishes even if ctx ends, so that the session can still report
// the holder.
func tryLock(ctx context.Context, conn *pgx.Conn) (locked bool, err error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderLimit)
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
		err = conn.QueryRow(asking, query, sql.LockClass, advisoryKey).Scan(&locked)
	}
	if err == nil && !locked {
		_, err = conn.PgConn().Exec(asking, "ROLLBACK").ReadAll()
	}
	return locked, err
}

// advisoryHolders finds the sessions that hold the host's advisory lock and may create shards.
const advisoryHolders = `
	SELECT format('process %s, role %s from %s, since %s', l.pid, a.usename,
		coalesce(host(a.client_addr), 'a local socket'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
	FROM pg_locks l
	JOIN pg_stat_activity a ON a.pid = l.pid AND a.datid = l.database AND a.datname = current_database()
	WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid::bigint = $1 AND l.objid::bigint = $2
		AND coalesce(has_schema_privilege(a.usesysid, to_regnamespace('kiloshard')::oid, 'CREATE'),
			has_database_privilege(a.usesysid, a.datid, 'CREATE'))`

// lockHolder returns the holder of one of the host's locks; empty if unknown.
func lockHolder(ctx context.Context, conn *pgx.Conn) string {
	var holder string
	if conn.QueryRow(ctx, sql.TableHolder(sql.CreateLock)).Scan(&holder) == nil {
		return ": " + holder
	}
	if conn.QueryRow(ctx, advisoryHolders, sql.LockClass, advisoryKey).Scan(&holder) == nil {
		return ": " + holder
	}
	return "" // it was just released, or the role may not see it
}
