package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// unloggedKeys is a condition for foreign keys of unlogged tables to tables that are replicated. A subscription applies a TRUNCATE … CASCADE to the
// replicated tables only, and Postgres empties none of them while another one refers to it.
const unloggedKeys = `con.contype = 'f' AND c.relpersistence = 'u' AND (SELECT relpersistence FROM pg_class WHERE oid = con.confrelid) <> 'u'`

// makeUnloggedKeys makes those foreign keys of the source on the target, where the tables are empty until the locks are held. If somebody empties
// a replicated table before that, the target does not keep up: this try of a cutover fails, and [job.catchUp] drops them again.
func (j *job) makeUnloggedKeys(ctx context.Context) error {
	if !j.apart.unlogged {
		return nil
	}
	var drop, add string
	if err := j.from.QueryRow(ctx, constraintScripts(unloggedKeys), j.Schema).Scan(nil, &add); err != nil || add == "" {
		return err
	}
	if err := j.empty(ctx, rows.Unlogged); err != nil {
		return err
	}
	if err := j.to.QueryRow(ctx, constraintScripts(unloggedKeys), j.Schema).Scan(&drop, nil); err != nil {
		return err
	}
	if err := j.onTarget(ctx, drop+add); err != nil {
		return fmt.Errorf("foreign keys of unlogged tables on %s: %w", j.Target, err)
	}
	return nil
}

// dropUnloggedKeys drops them on the target. Whoever reads a table there is waited for without anybody waiting behind the mover for long.
func (j *job) dropUnloggedKeys(ctx context.Context) error {
	if j.back != nil { // a shard with unlogged tables has no way back
		return nil
	}
	began, told := time.Now(), time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		var drop string
		if err := j.to.QueryRow(ctx, constraintScripts(unloggedKeys), j.Schema).Scan(&drop, nil); err != nil || drop == "" {
			return true, err
		}
		err := j.onTarget(ctx, drop)
		switch {
		case err == nil || !session.IsLockTimeout(err):
			return true, err
		case j.outOfPatience(began):
			return false, fmt.Errorf("no locks on %s within %s, to drop foreign keys of unlogged tables: %w", j.Target, j.cfg.Patience, err)
		case time.Since(told) > wait.Interval:
			told = time.Now()
			j.event("waits for locks on %s, to drop foreign keys of unlogged tables", j.Target)
		}
		return false, nil
	})
}

// onTarget runs statements in a transaction of the target in which nobody waits for long behind a lock.
func (j *job) onTarget(ctx context.Context, statements string) error {
	return session.Run(ctx, j.to, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; %s COMMIT", j.cfg.LockTimeout.Milliseconds(), statements))
}

// withoutUnloggedKeys leaves them out of the structure of a schema, with what is about them.
func withoutUnloggedKeys(ctx context.Context, conn *pgx.Conn, schema string, s drift.Structure) (drift.Structure, error) {
	found, err := conn.Query(ctx, `SELECT con.oid FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid WHERE con.connamespace = to_regnamespace($1) AND `+unloggedKeys, schema)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(found, pgx.RowTo[uint32])
	const constraints, comments = 2606, 2609 // pg_constraint and pg_description
	return slices.DeleteFunc(s, func(l drift.Line) bool {
		return (l.Class == constraints || l.Class == comments) && slices.Contains(keys, l.Object)
	}), err
}
