package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/sql"
)

// resume continues a move. The map decides, and not the ledger: in a failover of the source the last steps may have been lost.
func (j *job) resume(ctx context.Context) error {
	change := j.change()
	now, err := change.Newest(ctx)
	if err != nil {
		return err
	}
	home, onTarget := change.Home(now), j.Step == ledger.Switched || j.Step == ledger.Finished
	if err := j.agreed(ctx); err != nil {
		return j.noted(ctx, err)
	}
	switch {
	case home == j.Target && !onTarget && j.Step != ledger.Fenced:
		if err := j.fenceLate(ctx); err != nil {
			return j.noted(ctx, err)
		}
	case home != j.Target && (home != j.Source || onTarget):
		return j.noted(ctx, fmt.Errorf("version %d of the map puts %s on %s, and the ledger of %s has the move at step %s: expected %s; see kiloshard map edit", now.Version(), change.Names(), home, j.Source, j.Step, j.Target))
	case j.Step == ledger.Aborting:
		return j.abort(ctx)
	}
	return j.advance(ctx)
}

// fenceLate fences a source that has lost its fence, in a failover to a standby that had not replayed it. The map has the shard on the
// target, which serves it: nothing is copied or compared. Only the old schema has the later writes on the source.
func (j *job) fenceLate(ctx context.Context) error {
	var whole bool
	query := `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND step = $3) AND to_regnamespace($2) IS NOT NULL AND NOT ` + sql.IsOldFence("$2::text")
	if err := j.to.QueryRow(ctx, query, j.ID, j.Schema, ledger.Cutover).Scan(&whole); err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("the map has shard %d on %s, whose ledger does not say that its rows have come: expected %s; compare the hosts, and see kiloshard map edit", j.Shard, j.Target, j.Source)
	}
	j.note("%s has lost its fence, and %s serves: what was written on %[1]s since is in schema %s there only", j.Source, j.Target, j.OldSchema())
	if err := j.stream().Unsubscribe(ctx); err != nil {
		return err
	}
	if j.Step != ledger.Cutover {
		if err := j.setStep(ctx, ledger.Cutover); err != nil {
			return err
		}
	}
	if j.Back != nil {
		if err := wayback.Remove(ctx, j.to, j.Move); err != nil {
			return err
		}
		j.Back.Closed = j.Source + " has lost its fence"
	}
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	err := j.retryLocked(ctx, func() error {
		return j.fenceLocked(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return j.fenceSource(ctx, tx)
		})
	})
	if err != nil && !fence.IsUp(ctx, j.from, j.Move) {
		return err
	}
	j.Step = ledger.Fenced
	j.event(progress.Begun)
	return nil
}
