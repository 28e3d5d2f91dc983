package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
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
