package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Rollback takes shards back to the hosts that they have left, those of cfg.Shards or all if it is empty, whose way back is open. No
// write made since is lost, and no row is copied: a rollback is a move from its cutover on. It is in the ledger, where
// [Resume] and [Abort] find it.
func Rollback(ctx context.Context, cfg Config) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	all, err := Status(ctx, cfg.Map)
	if err != nil {
		return Report{}, err
	}
	var todo []ledger.Move
	var found []shards.Number
	for _, m := range all {
		if m.BackUntil().IsZero() || cfg.Shards.Len() > 0 && !cfg.Shards.Has(m.Shard) {
			continue
		}
		found = append(found, m.Shard)
		todo = append(todo, ledger.Move{ID: ledger.NewID(), Shard: m.Shard, Schema: m.Schema, Source: m.Target, Target: m.Source, Step: ledger.Prepare, Who: cfg.By, Returns: m.ID})
	}
	var without []shards.Number
	for n := range cfg.Shards.All() {
		if !slices.Contains(found, n) {
			without = append(without, n)
		}
	}
	for _, n := range without {
		if i := slices.IndexFunc(all, func(m ledger.Move) bool {
			return m.Shard == n && m.Outcome == ledger.Moved && m.Back != nil && m.Back.Closed != ""
		}); i >= 0 {
			return Report{}, fmt.Errorf("the way back of shard %d is closed: %s: %w", n, all[i].Back.Closed, ErrNoWayBack)
		}
	}
	if len(without) > 0 {
		return Report{}, fmt.Errorf("shards %s have no way back: %w", shards.SetOf(without...).Short(placing.NamesLimit), ErrNoWayBack)
	}
	return each(ctx, cfg, todo, func(ctx context.Context, j *job) error {
		if err := j.mayReturn(ctx); err != nil {
			return err
		}
		if err := claim.EnterAll(ctx, j.from, j.Move); err != nil {
			return err
		}
		j.entered = true
		j.event(progress.Begun)
		return j.advance(ctx)
	})
}

// ErrNoWayBack says that a shard cannot be rolled back: it was moved without a way back, or that is closed.
var ErrNoWayBack = errors.New("expected one that was moved with a way back (--rollback-for) which is open; a move to the old host copies a shard")

// mayReturn reports why a rollback cannot begin.
func (j *job) mayReturn(ctx context.Context) error {
	var under bool
	if err := j.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE shard = $1 AND outcome IS NULL)`, j.Shard).Scan(&under); err != nil {
		return err
	}
	if under {
		return fmt.Errorf("%w: see kiloshard move status", ErrUnderWay)
	}
	if home := j.cfg.Map.Host(j.Shard).Name; home != j.Source {
		return fmt.Errorf("the map has the shard on %s, not on %s any more: %w", home, j.Source, ErrNoWayBack)
	}
	why, err := wayback.Lost(ctx, j.from, *j.back)
	if err != nil {
		return err
	}
	if why != "" {
		if err := wayback.Close(ctx, j.to, j.from, *j.back, why); err != nil && !errors.Is(err, wayback.ErrClosed) {
			return err
		}
		return fmt.Errorf("%s: %w", why, ErrNoWayBack)
	}
	if err := j.change().Check(ctx); err != nil {
		return err
	}
	return j.verifyUnchanged(ctx)
}

// verifyUnchanged compares the shard's structure with what it was at the fence: the old schema still is like that.
func (j *job) verifyUnchanged(ctx context.Context) error {
	now, err := structure.Hash(ctx, j.src, j.cfg.Map, j.Shard)
	if err != nil {
		return err
	}
	if now != j.back.Back.Structure {
		return fmt.Errorf("the shard's tables were changed on %s since it moved there, as by migrate up: %w", j.Source, ErrNoWayBack)
	}
	return nil
}

// drain brings the old schema up to date with all that is committed.
func (j *job) drain(ctx context.Context) error {
	err := wayback.Drain(ctx, j.to, j.from, *j.back, j.limits())
	var refused *changes.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", refused, ErrNoWayBack)
	}
	return err
}

// openWayBack makes the publication and the slot on the target, and notes the shard's structure. The slot also has what is written before the fence, which is
// passed over.
func (j *job) openWayBack(ctx context.Context) (err error) {
	if j.Back == nil {
		return nil
	}
	if err := wayback.Publish(ctx, j.to, j.Move); err != nil {
		return err
	}
	if err := j.stream().MakeSlot(ctx, j.dst, j.to, j.BackSlot()); err != nil {
		return fmt.Errorf("slot of the way back on %s: %w", j.Target, err)
	}
	j.event(progress.WayBackMade)
	j.Back.Structure, err = structure.Hash(ctx, j.dst, j.cfg.Map, j.Shard)
	return err
}
