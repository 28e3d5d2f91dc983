package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Verify compares the rows of moves whose movers have ended. The error wraps a [RowsError] or a [StructureError] for each shard
// that differs.
//
// Of a move that is under way and has come to the cutover it compares all rows, as of one moment, for which writers wait.
// After the switch, and until [Clean], it compares the rows that nobody has changed on the target since: each must be
// among those that the source had when it was fenced. Whether a row that is no longer on the target was deleted there, it cannot tell.
func Verify(ctx context.Context, cfg Config) (Report, error) {
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay, ledger.Moved}, end: ledger.Cleaned}, func(ctx context.Context, j *job) error {
		switch {
		case j.Outcome == ledger.Moved && j.cfg.Map.Host(j.Shard).Name != j.Target: // it has moved on
			return nil
		case j.Outcome == ledger.Moved:
			return j.compareWithFenced(ctx)
		case j.Offline:
			return errors.New("nothing to compare: it copies the shard anew, while that is locked")
		case !slices.Contains([]ledger.Step{ledger.Copy, ledger.Cutover}, j.Step):
			return errors.New("nothing to compare: the move is at step " + string(j.Step))
		}
		_, err := j.compareAsOfOneMoment(ctx)
		return err
	}, func(*promote.Promotion, context.Context) error {
		return errors.New("nothing to compare: a promotion copies nothing")
	})
}

// compareWithFenced compares a shard that has moved with its old schema.
func (j *job) compareWithFenced(ctx context.Context) error {
	var there bool
	var carried string
	const query = `SELECT to_regnamespace($2) IS NOT NULL, coalesce(carried, '') FROM kiloshard.moves WHERE id = $1`
	if err := j.from.QueryRow(ctx, query, j.ID, j.OldSchema()).Scan(&there, &carried); err != nil {
		return err
	}
	if carried == "" && j.Split != "" { // it is a copy of a shard that has stayed
		return nil
	}
	if !there || carried == "" {
		return fmt.Errorf("nothing to compare: schema %s is not on %s any more", j.OldSchema(), j.Source)
	}
	j.event(progress.Comparing)
	e := &RowsError{}
	err := rows.Unchanged(ctx, j.from, j.OldSchema(), j.to, j.Schema, carried, func(table string, unknown int64) {
		e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on %s that nobody has changed since the move are not those of %s", table, unknown, j.Target, j.Source))
	})
	switch {
	case err != nil:
		return err
	case len(e.Differences) > 0:
		return e
	}
	j.event(progress.Compared)
	return nil
}
