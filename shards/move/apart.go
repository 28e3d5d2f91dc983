package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
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
