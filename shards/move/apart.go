package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// apart is what of a shard is not replicated, and is copied while callers wait.
type apart struct {
	unlogged bool   // it has unlogged tables
	large    string // the query of [large.Columns]
}

// readApart looks for what is not replicated. A shard that comes back by its way back has nothing of the kind.
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

// copyUnlogged copies the unlogged tables, which are locked, and refreshes the materialised views that read them.
func (j *job) copyUnlogged(ctx context.Context, from pgx.Tx) error {
	if !j.apart.unlogged {
		return nil
	}
	if err := j.copyAgain(ctx, from.Conn(), rows.Unlogged, unlimited, func(pgx.Tx) error { return nil }); err != nil {
		return err
	}
	return j.refresh(ctx, true)
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
		if err := j.replaceLarge(ctx, to, large.OIDs(objects)); err != nil || len(objects) == 0 {
			return err
		}
		if err := large.Copy(ctx, from, to, objects); err != nil {
			return err
		}
		j.event("copied %d large objects", len(objects))
		return nil
	})
}

// replaceLarge removes the large objects that a move has made on its target, and notes the numbers of those that it is about to make.
func (m Move) replaceLarge(ctx context.Context, to pgx.Tx, by []uint32) error {
	const query = `
		WITH made AS (SELECT unnest(large_objects) AS oid FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL),
			noted AS (UPDATE kiloshard.moves SET large_objects = $2::oid[] WHERE id = $1 AND side = 'target' AND outcome IS NULL)
		SELECT count(lo_unlink(oid)) FROM made JOIN pg_largeobject_metadata USING (oid)`
	_, err := to.Exec(ctx, query, m.ID, by)
	return err
}
