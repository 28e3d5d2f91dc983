package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// apart is what of a shard is not replicated, and is copied while callers wait.
type apart struct {
	unlogged bool   // it has unlogged tables
	large    string // the query of [large.Columns]
}

// readApart looks for what is not replicated. A shard that goes back by its way back has nothing of the kind.
func (j *job) readApart(ctx context.Context) error {
	if j.back != nil {
		return nil
	}
	const query = `SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relpersistence = 'u')`
	err := j.from.QueryRow(ctx, query, j.Schema).Scan(&j.apart.unlogged)
	if err == nil {
		j.apart.large, err = large.Columns(ctx, j.from, j.Schema)
	}
	return err
}

// copyLarge copies the large objects, in place of those that an earlier try has made: the target's ledger has their numbers.
func (j *job) copyLarge(ctx context.Context, from pgx.Tx) error {
	if j.apart.large == "" {
		return nil
	}
	objects, err := large.Find(ctx, from, j.apart.large)
	if err != nil {
		return err
	}
	return session.InTx(ctx, j.to, func(to pgx.Tx) error {
		if err := large.Replace(ctx, to, j.ID, large.OIDs(objects)); err != nil || len(objects) == 0 {
			return err
		}
		if err := large.Copy(ctx, from, to, objects); err != nil {
			return err
		}
		j.eventf(progress.CopiedLarge, "copied %d large objects", len(objects))
		return nil
	})
}

// unloggedKeys is the query for the scripts of [structure.UnloggedKeys].
var unloggedKeys = catalog.ConstraintScripts(structure.UnloggedKeys)

// makeUnloggedKeys makes the foreign keys of unlogged tables to replicated ones on the target, where the tables are empty until the locks are held. If a replicated
// table is truncated before that, the target does not keep up: this try of a cutover fails, and [job.catchUp] drops the keys again.
func (j *job) makeUnloggedKeys(ctx context.Context) error {
	if !j.apart.unlogged {
		return nil
	}
	var drop, add string
	if err := j.from.QueryRow(ctx, unloggedKeys, j.Schema).Scan(nil, &add); err != nil || add == "" {
		return err
	}
	if err := rows.Empty(ctx, j.to, j.Schema, rows.Unlogged); err != nil {
		return err
	}
	if err := j.to.QueryRow(ctx, unloggedKeys, j.Schema).Scan(&drop, nil); err != nil {
		return err
	}
	if err := j.onTarget(ctx, drop+add); err != nil {
		return fmt.Errorf("foreign keys of unlogged tables on %s: %w", j.Target, err)
	}
	return nil
}

// dropUnloggedKeys drops them on the target. It waits for readers of the tables a moment at a time, so that others do not wait behind it for long.
func (j *job) dropUnloggedKeys(ctx context.Context) error {
	if j.back != nil { // a shard with unlogged tables has no way back
		return nil
	}
	began, reported := time.Now(), time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		var drop string
		if err := j.to.QueryRow(ctx, unloggedKeys, j.Schema).Scan(&drop, nil); err != nil || drop == "" {
			return true, err
		}
		err := j.onTarget(ctx, drop)
		switch {
		case err == nil || !connect.IsLockTimeout(err):
			return true, err
		case j.limits().Exceeded(began):
			return false, fmt.Errorf("no locks on %s within %s, to drop foreign keys of unlogged tables: %w", j.Target, j.cfg.RetryLimit, err)
		case time.Since(reported) > wait.Interval:
			reported = time.Now()
			j.waits("waits for locks on %s, to drop foreign keys of unlogged tables", j.Target)
		}
		return false, nil
	})
}

// onTarget runs statements in a transaction of the target that waits for locks for [Config.LockTimeout].
func (j *job) onTarget(ctx context.Context, statements string) error {
	return session.Run(ctx, j.to, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; %s COMMIT", j.cfg.LockTimeout.Milliseconds(), statements))
}
