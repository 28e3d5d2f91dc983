package move

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// The errors of a shard that another command works on.
var (
	// ErrUnderWay says that the ledger has a move of the shard that has not ended: resume or abort it first.
	ErrUnderWay = claim.ErrUnderWay
	// ErrBusy says that another program migrates or moves the shard.
	ErrBusy = claim.ErrBusy
)

// takeOver claims a move that is in the ledger, reads it again, and reports whether it has one of some outcomes: another mover may have continued or ended
// it.
func (j *job) takeOver(ctx context.Context, outcomes ...ledger.Outcome) (bool, error) {
	if err := claim.Take(ctx, j.from, j.ID); err != nil {
		return false, err
	}
	if err := j.Reread(ctx, j.from); err != nil {
		return false, err
	}
	j.entered = j.Outcome == ledger.UnderWay
	return slices.Contains(outcomes, j.Outcome), nil
}

// setStep writes the step that is about to begin, if the ledger has the step before and this mover.
func (j *job) setStep(ctx context.Context, step ledger.Step) error {
	switch held, err := claim.SetStep(ctx, j.from, []string{j.ID}, step, j.Step); {
	case err != nil:
		return err
	case !held:
		return claim.Lost(j.Move, j.change().Names())
	}
	j.Step = step
	j.event(progress.Begun)
	return nil
}

// confirm returns nil if the ledger of the source has the move at its step, with this mover: no other mover aborts or resumes it before
// this mover's session has ended. It opens another session if that was lost. The error is a [placing.FinalError] if another mover has the move.
func (j *job) confirm(ctx context.Context) error {
	if j.from.IsClosed() {
		if err := j.reconnect(ctx); err != nil {
			return fmt.Errorf("the ledger of %s: %w", j.Source, err)
		}
	}
	switch count, err := claim.Held(ctx, j.from, j.Move); {
	case err != nil:
		return fmt.Errorf("the ledger of %s: %w", j.Source, err)
	case count != 1:
		return &placing.FinalError{Err: claim.Lost(j.Move, j.change().Names())}
	}
	return nil
}

// reconnect opens a session to the source in place of one that was lost, and claims the move.
func (j *job) reconnect(ctx context.Context) error {
	from, err := session.Open(ctx, j.src)
	if err != nil {
		return err
	}
	if err := claim.Retake(ctx, from, j.Move); err != nil {
		session.Close(ctx, from)
		return err
	}
	j.from = from
	return nil
}

// noted keeps an error for move status, and returns it.
func (j *job) noted(ctx context.Context, err error) error {
	if err != nil {
		claim.SetError(ctx, j.from, j.Move, err)
	}
	return err
}

// agreed returns an error unless the target's ledger has the move, too: a forged row on the source cannot change or drop a schema on the target.
func (j *job) agreed(ctx context.Context) error {
	if j.Step == ledger.Prepare || j.Step == ledger.Aborting {
		return nil // the target may have no row yet, and an abort looks for one
	}
	there, err := j.OnTarget(ctx, j.to)
	if err == nil && !there {
		err = fmt.Errorf("the ledger of %s does not have shard %d, which is at step %s in that of %s: expected the same move in both; see kiloshard move abort", j.Target, j.Shard, j.Step, j.Source)
	}
	return err
}

// unfence takes the fence down, and writes the step. The map must name the source, and must not be about to name the target.
func (j *job) unfence(ctx context.Context, step ledger.Step) error {
	if err := fence.TakeDown(ctx, j.from, j.Move, step); err != nil {
		return err
	}
	j.Step = step
	j.event(progress.Unfenced)
	return nil
}

// noteCutover writes into the target's ledger that all rows have come, except those written until the fence.
func noteCutover(ctx context.Context, to executor, id string) error {
	_, err := to.Exec(ctx, `UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp() WHERE id = $1 AND side = 'target' AND outcome IS NULL`, id, ledger.Cutover)
	return err
}

// executor is a session, or a transaction.
type executor interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
}
