package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrBusy says that another command adopts the database.
var ErrBusy = errors.New("another command adopts this database")

// closeLimit bounds the end of a session after the caller's context has ended.
const closeLimit = 5 * time.Second

// lockClass is the first key of the advisory lock; the second is 0. Those before it are the locks of package sql.
const lockClass = sql.LockClass + 2

// Open opens a session of an adoption. Its search_path has nothing but pg_catalog, and commits are on disk when they return. After a
// network failure the server ends it within about 25 s.
func Open(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	conn, err := connect.Open(ctx, host, func(c *pgx.ConnConfig) {
		for name, value := range map[string]string{
			"application_name": Application, "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "25s",
		} {
			c.RuntimeParams[name] = value
		}
	})
	if err != nil {
		return nil, &shards.HostError{Host: host.Name, Err: err}
	}
	return conn, nil
}

// Close ends a session, also when ctx has ended. The session may be nil.
func Close(ctx context.Context, conn *pgx.Conn) {
	if conn == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	_ = conn.Close(closing) // its work is done, or lost
}

// Lock lets one command at a time adopt a database.
type Lock struct {
	conn *pgx.Conn
	pid  int32
}

// Acquire takes the lock, in a session of its own, or returns [ErrBusy]. It does not wait. Call [Lock.Release].
func Acquire(ctx context.Context, host shards.Host) (*Lock, error) {
	conn, err := Open(ctx, host)
	if err != nil {
		return nil, err
	}
	l := &Lock{conn: conn}
	var locked bool
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock($1, 0), pg_backend_pid()`, lockClass).Scan(&locked, &l.pid)
	if err == nil && !locked {
		err = holder(ctx, conn)
	}
	if err != nil {
		Close(ctx, conn)
		return nil, err
	}
	return l, nil
}

// holder returns [ErrBusy] with the session that has the lock.
func holder(ctx context.Context, conn *pgx.Conn) error {
	const query = `select coalesce(string_agg(format('process %s, role %s, %s', l.pid, coalesce(a.usename, '?'), coalesce(nullif(a.application_name, ''), '?')), '; '), 'it has ended')
		from pg_locks l left join pg_stat_activity a on a.pid = l.pid where ` + held
	var who string
	if err := conn.QueryRow(ctx, query, lockClass).Scan(&who); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrBusy, who)
}

const held = `l.locktype = 'advisory' and l.granted and l.classid::bigint = $1 and l.objid = 0 and l.objsubid = 2
	and l.database = (select oid from pg_database where datname = current_database())`

// Check returns an error if the lock's session has lost it, as after a failure of the network. Call it in transactions that change
// something, before they commit.
func (l *Lock) Check(ctx context.Context, q Querier) error {
	var is bool
	if err := q.QueryRow(ctx, `select exists (select from pg_locks l where `+held+` and l.pid = $2)`, lockClass, l.pid).Scan(&is); err != nil {
		return err
	}
	if !is {
		return errors.New("the session that keeps other commands from adopting this database has ended: run the command again")
	}
	return nil
}

// Release gives the lock back and ends its session, also when ctx has ended. Without that the server would keep the lock until it has
// noticed the end of the session, and the next command could meet it.
func (l *Lock) Release(ctx context.Context) {
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	_, _ = l.conn.Exec(releasing, `select pg_advisory_unlock($1, 0)`, lockClass) // the end of the session does that, too
	Close(ctx, l.conn)
}
