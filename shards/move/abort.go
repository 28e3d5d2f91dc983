package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// cleanUp removes what the move made beside the shard itself: the subscription, the slot, the publication, the markers.
func (j *job) cleanUp(ctx context.Context) error {
	if j.to != nil {
		if err := j.unsubscribe(ctx); err != nil {
			return err
		}
		j.event("unsubscribed")
	}
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
		if conn == nil {
			continue
		}
		if err := dropMarkers(ctx, conn, j.ID); err != nil {
			return err
		}
	}
	return nil
}

// abort takes a move back that has not switched the map. The map decides, and not the ledger. The step is changed before the map, so that
// this mover's claim is sure to be the last one, and the map before anything is taken back.
func (j *job) abort(ctx context.Context) error {
	if err := j.mayAbort(ctx); err != nil {
		return err
	}
	working := ctx
	if j.Step == Fenced { // nobody serves the shard, so an interrupt has to wait
		j.hold()
		var cancel context.CancelFunc
		working, cancel = anyway(ctx)
		defer cancel()
		if err := j.keepClosed(working); err != nil {
			return err
		}
	} else if err := j.setStep(ctx, Aborting); err != nil {
		return err
	}
	if err := j.stay(working, "is aborted"); err != nil {
		return err
	}
	if j.Step == Fenced {
		if err := j.unfence(working, Aborting); err != nil {
			return err
		}
		j.letGo()
	}
	if err := j.cleanUp(ctx); err != nil {
		return err
	}
	if j.Back != nil && j.to != nil {
		if err := j.removeWayBack(ctx, j.to); err != nil {
			return err
		}
	}
	if err := session.Run(ctx, j.from, dropFence(j.fence())); err != nil {
		return err
	}
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	if err := j.setOutcome(ctx, j.from, Aborted); err != nil {
		return err
	}
	j.Outcome = Aborted
	j.event("aborted")
	return nil
}

// mayAbort returns an error if the target serves the shard, or is about to.
func (j *job) mayAbort(ctx context.Context) error {
	now, err := j.newest(ctx)
	if err != nil {
		return err
	}
	if err := j.notOnTarget(now); err != nil {
		return err
	}
	if j.Step == Switched || j.Step == Finished {
		return fmt.Errorf("%s serves the shard already: expected move resume, and then a move back to %s", j.Target, j.Source)
	}
	return nil
}

// takeBack drops what the move has made of the shard on the target, and ends it there; a target that is gone keeps it.
func (j *job) takeBack(ctx context.Context) error {
	if j.to == nil {
		j.event("note: subscription %s and schema %s may be left on %s: move clean drops them if that comes back", j.made(), j.Schema, j.Target)
		return nil
	}
	if j.Returns == "" {
		if err := j.mayAbort(ctx); err != nil {
			return err
		}
		if err := j.dropAborted(ctx, j.to); err != nil {
			return err
		}
	}
	return j.setOutcome(ctx, j.to, Aborted)
}

// dropAborted drops the shard on the target, if the target's ledger says that this move made it. The fence of an earlier move stays.
func (m Move) dropAborted(ctx context.Context, to *pgx.Conn) error {
	var ours bool
	query := `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL) AND NOT ` + sql.IsOldFence("$2::text")
	if err := to.QueryRow(ctx, query, m.ID, m.Schema).Scan(&ours); err != nil || !ours {
		return err
	}
	err := session.InTx(ctx, to, func(tx pgx.Tx) error {
		if err := m.replaceLarge(ctx, tx, nil); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP SCHEMA IF EXISTS "+m.Schema+" CASCADE")
		return err
	})
	if err != nil {
		return err
	}
	_, err = to.Exec(ctx, `UPDATE kiloshard.ledger SET current = false WHERE shard = $1 AND current AND to_regclass('kiloshard.ledger') IS NOT NULL`, m.Shard)
	if session.Code(err) == "42P01" { // no ledger
		return nil
	}
	return err
}
