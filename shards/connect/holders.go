package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LockWait is for how long a session waits for a lock that somebody else may hold for good, as lock_timeout takes it. CREATE
// RULE, for one, locks a table before Postgres looks whether the role may, and then waits for another table.
const LockWait = "30s"

// LimitLocks has a session of [Open] wait for a lock for no longer than [LockWait], unless the DSN has a lock_timeout.
func LimitLocks(config *pgx.ConnConfig) {
	if config.RuntimeParams["lock_timeout"] == "0" {
		config.RuntimeParams["lock_timeout"] = LockWait
	}
}

// holdersLimit is how long it may take to find out who holds a lock.
const holdersLimit = 30 * time.Second

// NameHolders adds to the error of a statement that waited for a lock in vain (55P03) which tables others have locked, and
// their processes. It rolls back the transaction that failed so. Other errors stay as they are.
func NameHolders(ctx context.Context, conn *pgconn.PgConn, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" || conn.IsClosed() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, holdersLimit)
	defer cancel()
	const query = `
set local search_path = pg_catalog, pg_temp;
select string_agg(name || ' by ' || holder, '; ') from (
	select distinct l.relation::regclass::text as name, case when l.pid is null then 'a prepared transaction' else format('process %s, role %s (%s, %s)',
		l.pid, coalesce(a.usename, '?'), coalesce(nullif(a.application_name, ''), 'without a name'), coalesce(a.state, '?')) end as holder
	from pg_locks l
	join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p', 'v', 'm', 'S') and c.relnamespace::regnamespace::text !~ '^pg_'
	left join pg_stat_activity a on a.pid = l.pid
	where l.granted and l.pid is distinct from pg_backend_pid() and l.mode in ('ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		and l.database = (select oid from pg_database where datname = current_database())
	order by 1, 2 limit 10) h`
	const inTransaction, failed = 'T', 'E'
	if status := conn.TxStatus(); status == inTransaction || status == failed {
		if _, rollback := conn.Exec(ctx, "rollback").ReadAll(); rollback != nil {
			return err
		}
	}
	results, asked := conn.Exec(ctx, query).ReadAll()
	if asked != nil || results[len(results)-1].Rows[0][0] == nil {
		return err
	}
	return fmt.Errorf("%w; locked are %s", err, results[len(results)-1].Rows[0][0])
}

// IsLockTimeout reports whether a statement failed because it did not get a lock in time, or was chosen to end a deadlock.
func IsLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}
