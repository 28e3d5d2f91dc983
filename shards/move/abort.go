package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/cleanup"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// abortLimit is how long an abort of a shard that no host serves may take after ctx has ended.
const abortLimit = 2 * time.Minute

// cleanUp removes what the move made beside the shard itself: the subscription, the slot, the publication, the markers.
func (j *job) cleanUp(ctx context.Context) error {
	s := j.stream()
	if j.to != nil {
		if err := s.Unsubscribe(ctx); err != nil {
			return err
		}
		j.event(progress.Unsubscribed)
	}
	if err := s.Unpublish(ctx); err != nil {
		return err
	}
	j.event(progress.Unpublished)
	if err := s.RestoreIdentities(ctx); err != nil {
		return err
	}
	if j.back != nil && j.Step == ledger.Switched {
		if err := wayback.Remove(ctx, j.from, *j.back); err != nil {
			return err
		}
	}
	for _, conn := range []*pgx.Conn{j.from, j.to} {
		if conn == nil {
			continue
		}
		if err := replicate.DropMarkers(ctx, conn, j.ID); err != nil {
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
	if j.Step == ledger.Fenced { // no host serves the shard, so an interrupt has to wait
		j.hold.Take()
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
		defer cancel()
		if err := j.keepClosed(working); err != nil {
			return err
		}
	} else if err := j.setStep(ctx, ledger.Aborting); err != nil {
		return err
	}
	if err := j.change().Stay(working, "is aborted"); err != nil {
		return err
	}
	if j.Step == ledger.Fenced {
		if err := j.unfence(working, ledger.Aborting); err != nil {
			return err
		}
		j.hold.Release()
	}
	if err := j.cleanUp(ctx); err != nil {
		return err
	}
	if j.Back != nil && j.to != nil {
		if err := wayback.Remove(ctx, j.to, j.Move); err != nil {
			return err
		}
	}
	if err := session.Run(ctx, j.from, fence.Drop(j.FenceSchema())); err != nil {
		return err
	}
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	if err := claim.SetOutcome(ctx, j.from, j.Move, ledger.Aborted); err != nil {
		return err
	}
	j.Outcome = ledger.Aborted
	j.event(progress.Aborted)
	return nil
}

// mayAbort returns an error if the target serves the shard, or is about to.
func (j *job) mayAbort(ctx context.Context) error {
	change := j.change()
	now, err := change.Newest(ctx)
	if err != nil {
		return err
	}
	if err := change.NotOnTarget(now); err != nil {
		return err
	}
	if j.Step == ledger.Switched || j.Step == ledger.Finished {
		return fmt.Errorf("%s serves the shard already: expected move resume, and then a move back to %s", j.Target, j.Source)
	}
	return nil
}

// takeBack drops what the move has made of the shard on the target, and ends it there; a target that is gone keeps it.
func (j *job) takeBack(ctx context.Context) error {
	if j.to == nil {
		j.note("subscription %s and schema %s may be left on %s: move clean drops them if that comes back", j.Slot(), j.Schema, j.Target)
		return nil
	}
	if j.Returns == "" {
		if err := j.mayAbort(ctx); err != nil {
			return err
		}
		if err := cleanup.DropAborted(ctx, j.to, j.Move); err != nil {
			return err
		}
	}
	return claim.SetOutcome(ctx, j.to, j.Move, ledger.Aborted)
}
