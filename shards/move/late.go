package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/sql"
)

// resume continues a move. The map decides, and not the ledger: in a failover of the source the last steps may have been lost.
func (j *job) resume(ctx context.Context) error {
	now, err := j.newest(ctx)
	if err != nil {
		return err
	}
	home, onTarget := j.home(now), j.Step == Switched || j.Step == Finished
	if err := j.agreed(ctx); err != nil {
		return j.noted(ctx, err)
	}
	switch {
	case home == j.Target && !onTarget && j.Step != Fenced:
		if err := j.fenceLate(ctx); err != nil {
			return j.noted(ctx, err)
		}
	case home != j.Target && (home != j.Source || onTarget):
		return j.noted(ctx, fmt.Errorf("version %d of the map puts %s on %s, and the ledger of %s has the move at step %s: expected %s; see kiloshard map edit", now.Version(), j.moving(), home, j.Source, j.Step, j.Target))
	case j.Step == Aborting:
		return j.abort(ctx)
	}
	return j.advance(ctx)
}

// executor is a session, or a transaction.
type executor interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
}

// noteCutover has the target's ledger say that all rows have come, but for what is written until the fence.
func (j *job) noteCutover(ctx context.Context, to executor) error {
	_, err := to.Exec(ctx, `UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp() WHERE id = $1 AND side = 'target' AND outcome IS NULL`, j.ID, Cutover)
	return err
}

// fenceLate fences a source that has lost its fence, in a failover to a standby that had not replayed it. The map has the shard on the
// target, which serves it: nothing is copied or compared. What was written on the source since is in its old schema only.
func (j *job) fenceLate(ctx context.Context) error {
	var whole bool
	query := `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND step = $3) AND to_regnamespace($2) IS NOT NULL AND NOT ` + sql.IsOldFence("$2::text")
	if err := j.to.QueryRow(ctx, query, j.ID, j.Schema, Cutover).Scan(&whole); err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("the map has %s on %s, whose ledger does not say that its rows have come: expected %s; compare the hosts, and see kiloshard map edit", j.moving(), j.Target, j.Source)
	}
	j.event("note: %s has lost its fence, and %s serves: what was written on %[1]s since is in schema %s there only", j.Source, j.Target, j.moved())
	if err := j.unsubscribe(ctx); err != nil {
		return err
	}
	if j.Step != Cutover {
		if err := j.setStep(ctx, Cutover); err != nil {
			return err
		}
	}
	if j.Back != nil {
		if err := j.removeWayBack(ctx, j.to); err != nil {
			return err
		}
		j.Back.Closed = j.Source + " has lost its fence"
	}
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	err := j.untilFenced(ctx, func() error {
		return j.fenceLocked(ctx, func(ctx context.Context, tx pgx.Tx) error {
			sequences, err := sequencesOf(ctx, tx, j.Schema)
			if err != nil {
				return err
			}
			return j.erect(ctx, tx, sequences)
		})
	})
	if err != nil && !j.isFenced(ctx) {
		return err
	}
	j.Step = Fenced
	j.event("begun")
	return nil
}
