package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

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

// copyUnlogged copies the unlogged tables, which are locked, and refreshes the materialised views that read them.
func (j *job) copyUnlogged(ctx context.Context, from pgx.Tx) error {
	if !j.apart.unlogged {
		return nil
	}
	c := j.copyOf(ctx)
	c.Limit = nil
	err := c.Locked(ctx, from.Conn(), j.to, rows.Unlogged, func(pgx.Tx) error {
		j.event(progress.Copied)
		return nil
	})
	if err != nil {
		return err
	}
	return j.refresh(ctx, true)
}

// refresh fills the materialised views of the target, or those that read unlogged tables.
func (j *job) refresh(ctx context.Context, unlogged bool) error {
	refreshed, err := rows.Refresh(ctx, j.dst, j.copied(), unlogged)
	if refreshed && err == nil {
		j.event(progress.Refreshed)
	}
	return err
}
