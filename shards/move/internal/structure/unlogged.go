package structure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// areUnloggedKeys is a condition for foreign keys of unlogged tables to tables that are replicated. A subscription applies a TRUNCATE … CASCADE to the
// replicated tables only, and Postgres empties none of them while another table refers to it. So the cutover makes these keys.
const areUnloggedKeys = `con.contype = 'f' AND c.relpersistence = 'u' AND (SELECT relpersistence FROM pg_class WHERE oid = con.confrelid) <> 'u'`

// withoutUnloggedKeys leaves them out of the structure of a schema, with what is about them.
func withoutUnloggedKeys(ctx context.Context, conn *pgx.Conn, schema string, s drift.Structure) (drift.Structure, error) {
	found, err := conn.Query(ctx, `SELECT con.oid FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid WHERE con.connamespace = to_regnamespace($1) AND `+areUnloggedKeys, schema)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(found, pgx.RowTo[uint32])
	const constraints, comments = 2606, 2609 // pg_constraint and pg_description
	return slices.DeleteFunc(s, func(l drift.Line) bool {
		return (l.Class == constraints || l.Class == comments) && slices.Contains(keys, l.Object)
	}), err
}

// unloggedScripts is the query for the scripts that drop these keys and make them again.
var unloggedScripts = catalog.ConstraintScripts(areUnloggedKeys)

// MakeUnloggedKeys makes these keys on the target, where the tables are empty until the locks are held. If a replicated table is truncated before that, the target
// does not keep up: the try of a cutover fails, and [DropUnloggedKeys] is called before the next one.
func MakeUnloggedKeys(ctx context.Context, source, target *pgx.Conn, m ledger.Move, lock time.Duration) error {
	var drop, add string
	if err := source.QueryRow(ctx, unloggedScripts, m.Schema).Scan(nil, &add); err != nil || add == "" {
		return err
	}
	if err := rows.Empty(ctx, target, m.Schema, rows.Unlogged); err != nil {
		return err
	}
	if err := target.QueryRow(ctx, unloggedScripts, m.Schema).Scan(&drop, nil); err != nil {
		return err
	}
	if err := runLimited(ctx, target, drop+add, lock); err != nil {
		return fmt.Errorf("foreign keys of unlogged tables on %s: %w", m.Target, err)
	}
	return nil
}

// DropUnloggedKeys drops these keys on the target. It waits for readers of the tables a moment at a time, so that others do not wait behind it for long.
func DropUnloggedKeys(ctx context.Context, target *pgx.Conn, m ledger.Move, limits wait.Limits) error {
	began, reported := time.Now(), time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		var drop string
		if err := target.QueryRow(ctx, unloggedScripts, m.Schema).Scan(&drop, nil); err != nil || drop == "" {
			return true, err
		}
		err := runLimited(ctx, target, drop, limits.Lock)
		switch {
		case err == nil || !connect.IsLockTimeout(err):
			return true, err
		case limits.Exceeded(began):
			return false, fmt.Errorf("no locks on %s within %s, to drop foreign keys of unlogged tables: %w", m.Target, limits.Retry, err)
		case time.Since(reported) > wait.Interval:
			reported = time.Now()
			limits.Report("waits for locks on %s, to drop foreign keys of unlogged tables", m.Target)
		}
		return false, nil
	})
}

// runLimited runs statements in a transaction that waits for locks for a limited time.
func runLimited(ctx context.Context, conn *pgx.Conn, statements string, lock time.Duration) error {
	return session.Run(ctx, conn, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; %s COMMIT", lock.Milliseconds(), statements))
}
