package locks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// WaitForOlder returns when no transaction on a host that is older than limits.Lock holds a lock in one of the schemas, or makes something there: a mover
// that waited for such a transaction would make others wait behind it. began is when the tries that this one belongs to began.
func WaitForOlder(ctx context.Context, conn *pgx.Conn, limits wait.Limits, began time.Time, schemas ...string) error {
	reported := time.Time{}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		const query = `
			SELECT DISTINCT CASE WHEN l.pid IS NULL THEN format('prepared transaction %L', p.gid) ELSE format('a transaction of process %s, %s', a.pid, a.state) END
			FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_stat_activity a ON a.pid = l.pid AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
			LEFT JOIN pg_locks own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = l.virtualtransaction
			LEFT JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted
				AND coalesce(c.relnamespace, CASE l.classid WHEN 'pg_namespace'::regclass THEN l.objid END) IN (SELECT to_regnamespace(s) FROM unnest($1::text[]) s)
				AND coalesce(p.prepared, a.xact_start) < clock_timestamp() - make_interval(secs => $2)`
		blockers, err := session.Texts(ctx, conn, query, schemas, limits.Lock.Seconds())
		if err == nil && len(blockers) > 0 && time.Since(reported) > wait.Interval {
			reported = time.Now()
			limits.Report("waits for %s", strings.Join(blockers, "; "))
		}
		if err == nil && len(blockers) > 0 && limits.Exceeded(began) {
			return false, fmt.Errorf("no cutover within %s: %s holds a lock in the shard", limits.Retry, strings.Join(blockers, "; "))
		}
		return len(blockers) == 0, err
	})
}
