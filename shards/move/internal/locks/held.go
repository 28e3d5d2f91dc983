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

// Timeout is the lock_timeout of statements in [Retry].
const Timeout = time.Second

// Retry calls fn, which waits for locks in a schema for [Timeout] at a time, until it no longer fails because of one, and reports the lock's holders.
func Retry(ctx context.Context, conn *pgx.Conn, limits wait.Limits, schema string, fn func() error) error {
	began, reported := time.Now(), time.Time{}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := fn()
		if session.Code(err) != "55P03" {
			return err == nil, err
		}
		const query = `
			SELECT DISTINCT coalesce('process ' || l.pid || coalesce(', ' || a.state, ''), 'a prepared transaction')
			FROM pg_locks l JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted AND l.mode = 'AccessExclusiveLock' AND c.relnamespace = to_regnamespace($1)`
		holders, asked := session.Texts(ctx, conn, query, schema)
		switch {
		case asked != nil:
			return false, asked
		case limits.Exceeded(began):
			return false, fmt.Errorf("no lock within %s, which is held by %s: %w", limits.Retry, strings.Join(holders, "; "), err)
		case time.Since(reported) > wait.Interval:
			reported = time.Now()
			limits.Report("waits for a lock of %s", strings.Join(holders, "; "))
		}
		return false, nil
	})
}

// Prepared names the prepared transactions that hold locks in some schemas.
func Prepared(ctx context.Context, conn *pgx.Conn, schemas []string) ([]string, error) {
	const query = `
		SELECT DISTINCT format('prepared transaction %L', p.gid)
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_locks own ON own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = l.virtualtransaction
		JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
		WHERE l.pid IS NULL AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND n.nspname = ANY ($1)`
	return session.Texts(ctx, conn, query, schemas)
}
