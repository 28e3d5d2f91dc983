package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// cleanUp removes what the move made beside the shard itself: the subscription, the slots, the publication, the markers.
func (j *job) cleanUp(ctx context.Context) error {
	if err := j.unsubscribe(ctx); err != nil {
		return err
	}
	j.event("unsubscribed")
	if err := j.unpublish(ctx); err != nil {
		return err
	}
	j.event("unpublished")
	if err := j.restoreIdentities(ctx); err != nil {
		return fmt.Errorf("replica identities on %s: %w", j.Source, err)
	}
	if j.back != nil && j.Step == Switched {
		if err := j.back.removeWayBack(ctx, j.from); err != nil {
			return err
		}
	}
	for _, conn := range []*pgx.Conn{j.from, j.to} {
		if _, err := conn.Exec(ctx, `DELETE FROM kiloshard.move_markers WHERE move = $1`, j.ID); err != nil {
			return err
		}
	}
	return nil
}

// abort takes a move back that has not switched the map.
func (j *job) abort(ctx context.Context) error {
	switch j.Step {
	case Switched, Finished:
		return fmt.Errorf("%s serves the shard already: expected move resume, and then a move back to %s", j.Target, j.Source)
	case Fenced:
		if j.back != nil && j.back.Outcome == Returned {
			return fmt.Errorf("%s takes writes again already: expected move resume", j.Target)
		}
		if err := j.stay(ctx); err != nil {
			return err
		}
		if err := j.unfence(ctx); err != nil {
			return err
		}
	default:
		if err := j.setStep(ctx, Aborting); err != nil {
			return err
		}
	}
	if err := j.cleanUp(ctx); err != nil {
		return err
	}
	if j.Back != nil {
		if err := j.removeWayBack(ctx, j.to); err != nil {
			return err
		}
	}
	if err := run(ctx, j.from, "DROP SCHEMA IF EXISTS "+j.fence()+" CASCADE"); err != nil {
		return err
	}
	if j.back == nil {
		if err := j.dropAborted(ctx); err != nil {
			return err
		}
	}
	if err := j.setOutcome(ctx, j.to, Aborted); err != nil {
		return err
	}
	if err := j.setOutcome(ctx, j.from, Aborted); err != nil {
		return err
	}
	j.Outcome = Aborted
	j.event("aborted")
	return nil
}

// dropAborted drops the shard on the target, if the target's ledger says that this move made it.
func (j *job) dropAborted(ctx context.Context) error {
	var ours bool
	const query = `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL)`
	if err := j.to.QueryRow(ctx, query, j.ID).Scan(&ours); err != nil || !ours {
		return err
	}
	if err := run(ctx, j.to, "DROP SCHEMA IF EXISTS "+j.Schema+" CASCADE"); err != nil {
		return err
	}
	_, err := j.to.Exec(ctx, `UPDATE kiloshard.ledger SET current = false WHERE shard = $1 AND current AND to_regclass('kiloshard.ledger') IS NOT NULL`, j.Shard)
	if code(err) == "42P01" { // no ledger
		return nil
	}
	return err
}

// stay makes sure that the map names the source, and that no change of a mover that was killed can still come: it makes one
// more version of the map, so that whoever follows the version before fails.
func (j *job) stay(ctx context.Context) error {
	first := 0
	why := fmt.Sprintf("the move of %s from %s to %s is aborted", j.moving(), j.Source, j.Target)
	return j.swap(ctx, why, func(now *shards.Map) ([]shards.Placement, error) {
		if j.home(now) == j.Target {
			return nil, fmt.Errorf("version %d of the map puts %s on %s already: expected move resume, and then a move back", now.Version(), j.moving(), j.Target)
		}
		if first == 0 {
			first = now.Version()
		}
		if now.Version() > first {
			return nil, nil
		}
		return now.Config().Placement, nil
	})
}
