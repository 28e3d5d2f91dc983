package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// keepPause is the pause between two looks at the ways back.
const keepPause = 2 * time.Second

// Keep keeps the ways back of some shards short, of all if cfg.Shards is empty: it applies the writes on the new hosts to the old
// schemas, so that the hosts keep little WAL for them. It closes a way back whose time is over, that keeps more WAL than it may, or that has
// become impossible, and reports that by an event. It returns once none is open, or when ctx ends, without an error: ways back that
// are open then stay open, and WAL piles up for them until [Rollback], [Clean], or another Keep. A host that does not answer is tried again.
func Keep(ctx context.Context, cfg KeepConfig) error { return keepWays(ctx, cfg, false) }

// KeepBeside is [Keep] while moves are under way: it continues until ctx ends, also while no way back is open yet.
func KeepBeside(ctx context.Context, cfg KeepConfig) error { return keepWays(ctx, cfg, true) }

func keepWays(ctx context.Context, cfg KeepConfig, beside bool) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		open, err := keepOnce(ctx, cfg)
		if err == nil && open == 0 && !beside {
			break
		}
		if err != nil {
			cfg.Logger.Warn("ways back", "err", err)
		}
		_ = wait.Sleep(ctx, keepPause) // whether ctx has ended is looked at above
	}
	return nil
}

// keepOnce looks at each way back once, and returns how many are open.
func keepOnce(ctx context.Context, cfg KeepConfig) (open int, err error) {
	all, err := Status(ctx, cfg.Map)
	conns := hosts.New(cfg.Map)
	defer conns.Close(ctx)
	errs := []error{err}
	for _, m := range all {
		if m.BackUntil().IsZero() || cfg.Shards.Len() > 0 && !cfg.Shards.Has(m.Shard) {
			continue
		}
		open++
		switch closed, err := wayback.Keep(ctx, conns, m); {
		case err != nil:
			errs = append(errs, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Target, Err: err})
			if ctx.Err() == nil {
				cfg.event(m, "the way back: %v", err)
			}
		case closed != "":
			cfg.closed(m, closed)
		}
	}
	return open, errors.Join(errs...)
}

// CloseLost closes the ways back of all shards that cannot be used any more, as [Keep] does: their time is over, they keep too much WAL, or they
// have lost some. A dry run closes none. It returns the shards, without those of hosts that do not answer.
func CloseLost(ctx context.Context, cfg KeepConfig, dryRun bool) (lost shards.Set, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return lost, err
	}
	all, err := Status(ctx, cfg.Map)
	errs := []error{err}
	conns := hosts.New(cfg.Map)
	defer conns.Close(ctx)
	var found []shards.Number
	for _, m := range wayback.Open(all) {
		switch why, err := wayback.CloseLost(ctx, conns, m, dryRun); {
		case err != nil:
			errs = append(errs, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Target, Err: err})
		case why != "":
			found = append(found, m.Shard)
			if !dryRun {
				cfg.closed(m, why)
			}
		}
	}
	return shards.SetOf(found...), errors.Join(errs...)
}

func (c KeepConfig) event(m ledger.Move, format string, args ...any) {
	if c.Events != nil {
		c.Events(progress.Event{Shard: m.Shard, From: m.Source, To: m.Target, Step: ledger.Finished, Kind: progress.WayBack, What: fmt.Sprintf(format, args...)})
	}
}

// closed reports why a way back is closed.
func (c KeepConfig) closed(m ledger.Move, why string) {
	c.event(m, "the way back to %s is closed: %s", m.Source, why)
}
