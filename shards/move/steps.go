package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// advance takes a move from the step that it is in to its end. From the fence until the map has changed no host serves the shard, so
// an interrupt has to wait.
func (j *job) advance(ctx context.Context) error {
	for {
		working := ctx
		if j.Step == ledger.Fenced {
			j.hold.Take()
			working = context.WithoutCancel(ctx)
		}
		next, err := j.do(working)
		if next == ledger.Fenced {
			working = context.WithoutCancel(ctx)
		} else {
			j.hold.Release()
		}
		switch {
		case err != nil:
			return j.noted(ctx, err)
		case next == ledger.Finished:
			return j.finish(ctx)
		}
		if next == ledger.Fenced { // the fence's own transaction has written it
			j.Step = next
			j.event(progress.Begun)
			continue
		}
		if err := j.setStep(working, next); err != nil {
			return err
		}
	}
}

// do does the work of the step, and returns the step that follows. It may find the same work half done by a mover that was killed.
func (j *job) do(ctx context.Context) (ledger.Step, error) {
	switch j.Step {
	case ledger.Prepare:
		next := ledger.Schema
		if j.back != nil {
			next = ledger.Copy
		}
		return next, claim.Enter(ctx, j.to, j.Move, ledger.TargetSide)
	case ledger.Schema:
		if j.Offline {
			return ledger.Cutover, j.makeSchema(ctx)
		}
		return ledger.Publish, j.makeSchema(ctx)
	case ledger.Publish:
		return ledger.Copy, j.publish(ctx)
	case ledger.Copy:
		return ledger.Cutover, j.copy(ctx)
	case ledger.Cutover:
		cut := j.cutover
		if j.Offline {
			cut = j.cutoverOffline
		}
		err := cut(ctx)
		if err != nil && fence.IsUp(ctx, j.from, j.Move) { // the answer to its COMMIT was lost
			err = nil
		}
		return ledger.Fenced, err
	case ledger.Fenced:
		defer j.turn.End(ctx)
		if down, err := j.unfenceIfChanged(ctx); err != nil || down {
			return ledger.Cutover, err
		}
		if j.back != nil {
			if err := j.reopen(ctx); err != nil {
				return "", err
			}
		} else if err := j.openTarget(ctx); err != nil {
			return "", err
		}
		if err := j.change().Switch(ctx, j.mapped, j.confirm); err != nil {
			return "", err
		}
		j.event(progress.Switched)
		return ledger.Switched, settle(ctx, j.to)
	case ledger.Switched:
		if err := j.noteLate(ctx); err != nil {
			return "", err
		}
		if j.Offline { // the others have done it before their cutover
			j.analyze(ctx)
		}
		return ledger.Finished, j.cleanUp(ctx)
	}
	return "", fmt.Errorf("the move is at step %q, which cannot be continued; see kiloshard move abort", j.Step)
}

// finish ends the move in both ledgers, the target's first: commands look at the source's.
func (j *job) finish(ctx context.Context) error {
	if err := fence.Unguard(ctx, j.to, j.limits(), j.Move); err != nil {
		return j.noted(ctx, err)
	}
	for _, conn := range []*pgx.Conn{j.to, j.from} {
		if err := claim.SetOutcome(ctx, conn, j.Move, ledger.Moved); err != nil {
			return err
		}
	}
	j.Step, j.Outcome = ledger.Finished, ledger.Moved
	j.event(progress.Done)
	return nil
}
