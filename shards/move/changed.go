package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/retry"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// maxPasses is how often the structures, or the last changes of a large shard, are compared before a cutover at most.
const maxPasses = 4

// countsViews reports whether a materialised view that is refreshed counts as changed. A job that refreshes views all the time does not make the mover compare
// for ever.
func (j *job) countsViews() bool { return j.comparison.again < maxPasses }

// unchanged returns [structure.ErrChanged] if the shard on the source was changed since it was compared.
func (j *job) unchanged(ctx context.Context) error {
	return j.comparison.catalogs.Unchanged(ctx, j.from, j.Schema, j.countsViews())
}

// recompareIfChanged calls compare if the shard was changed since it was compared.
func (j *job) recompareIfChanged(ctx context.Context, compare func(context.Context) error) error {
	now, err := structure.ReadCatalogs(ctx, j.from, j.Schema, j.countsViews())
	if err != nil || now == j.comparison.catalogs {
		return err
	}
	j.comparison.again++
	j.eventf(progress.Recomparing, "compares again: %v", structure.ErrChanged)
	return compare(ctx)
}

// orChanged returns the error of a cutover, with [structure.ErrChanged] if that may be its cause: a table that was made since has no copy.
func (j *job) orChanged(ctx context.Context, err error) error {
	if err == nil || retry.May(err) || !errors.Is(j.unchanged(ctx), structure.ErrChanged) {
		return err
	}
	return fmt.Errorf("%w: %w", structure.ErrChanged, err)
}

// isServed reports whether the other side takes writes already, or the map has the shard there, because of another mover, which has fenced it.
// That one may also have begun to take the move back.
func (j *job) isServed(ctx context.Context) (bool, error) {
	if j.mapped != nil { // this one has
		return false, nil
	}
	if err := noteCutover(ctx, j.to, j.ID); err != nil {
		return false, err
	}
	if open, err := fence.IsOpen(ctx, j.to, j.Move); err != nil || open {
		return open, err
	}
	change := j.change()
	now, err := change.Newest(ctx)
	return err == nil && change.NotOnTarget(now) != nil, err
}

// unfenceIfChanged takes the fence down, and reports so, if the shard was changed while it was fenced. It does not if a host serves the shard
// already, nor if the source does not answer: no host serves the shard until then.
func (j *job) unfenceIfChanged(ctx context.Context) (down bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, placing.SwitchLimit)
	defer cancel()
	served, err := j.isServed(ctx)
	if err != nil {
		return false, err
	}
	asking, asked := context.WithTimeout(ctx, hosts.AnswerLimit)
	defer asked()
	changed := structure.UnchangedBehind(asking, j.from, j.Move)
	if changed != nil && j.from.IsClosed() && j.reconnect(asking) == nil {
		changed = structure.UnchangedBehind(asking, j.from, j.Move)
	}
	switch {
	case changed == nil:
		return false, nil
	case served || !errors.Is(changed, structure.ErrChanged):
		j.note("schema %s on %s may not be what was compared: %v", j.OldSchema(), j.Source, changed)
		return false, nil
	case j.mapped == nil:
		if err := j.change().Stay(ctx, "is tried again"); err != nil {
			return false, err
		}
	}
	if j.opening != nil { // a slot that is made on the target waits for its transactions
		_ = session.Run(ctx, j.opening, "ROLLBACK")
	}
	j.eventf(progress.Retrying, "tries again: %v", changed)
	return true, j.unfence(ctx, ledger.Cutover)
}

// noteLate reports what transactions that had begun before the fence have committed since: the target does not have it.
func (j *job) noteLate(ctx context.Context) error {
	newcomers, err := fence.Newcomers(ctx, j.from, j.Move)
	if err != nil {
		return err
	}
	for _, what := range newcomers {
		j.note("%s was made while the shard was fenced, and is on %s only", what, j.Source)
	}
	err = structure.UnchangedBehind(ctx, j.from, j.Move)
	if errors.Is(err, structure.ErrChanged) {
		j.note("somebody has changed functions, types or grants of schema %s on %s since the shard was fenced: they are not so on %s", j.OldSchema(), j.Source, j.Target)
		err = nil
	}
	return err
}
