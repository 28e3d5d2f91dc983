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

// The lock that a Create or Upgrade holds on each host, for the length of its session there: [sql.LockClass] and this
// key, which is no sequence's OID.
const hostLock = 1

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
	deadline := time.Now().Add(wait)
	for _, i := range order {
		if err := lockHost(ctx, s.conns[i], deadline, wait); err != nil {
			return &shards.HostError{Host: s.hosts[i].Name, Err: err}
		}
	}
	return nil
}

func lockHost(ctx context.Context, conn *pgx.Conn, deadline time.Time, wait time.Duration) error {
	if _, err := conn.Exec(ctx, `SET idle_session_timeout = 0`); err != nil { // the session is idle while others work
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

// tryHost takes the host's lock if it is free. It ends although ctx has ended, so that an interrupt finds the session able to
// say who holds the lock.
func tryHost(ctx context.Context, conn *pgx.Conn) (got bool, err error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAsk)
	defer cancel()
	err = conn.QueryRow(asking, `SELECT pg_try_advisory_lock($1, $2)`, sql.LockClass, hostLock).Scan(&got)
	return got, err
}

// lockAsk is how long it may take to find out who holds the lock, once nobody waits for it any more.
const lockAsk = 30 * time.Second

// lockHolder says who holds the host's lock, as far as it is known.
func lockHolder(ctx context.Context, conn *pgx.Conn) string {
	const query = `
		SELECT format(': process %s, role %s from %s, since %s', l.pid, coalesce(a.usename, '?'),
			coalesce(host(a.client_addr), 'a local socket'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
		FROM pg_locks l
		JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
		LEFT JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid = $1::oid AND l.objid = $2::oid`
	var holder string
	if conn.QueryRow(ctx, query, uint32(sql.LockClass), uint32(hostLock)).Scan(&holder) != nil {
		return "" // it has just let go, or the role may not know
	}
	return holder
}
