package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
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
		if err := cfg.keep(ctx, conns, m); err != nil {
			errs = append(errs, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Target, Err: err})
			if ctx.Err() == nil {
				cfg.event(m, "the way back: %v", err)
			}
		}
	}
	return open, errors.Join(errs...)
}

// keep brings one way back up to date, or closes it.
func (c KeepConfig) keep(ctx context.Context, conns *hosts.Conns, m ledger.Move) error {
	source, err := conns.Get(ctx, m.Source)
	if err != nil {
		return err
	}
	target, err := conns.Get(ctx, m.Target)
	if err != nil {
		return err
	}
	why, err := wayback.Lost(ctx, target, m)
	if err != nil {
		return err
	}
	if why == "" {
		err = wayback.Changes(source, target, m).Drain(ctx)
		var refused *changes.Error
		if !errors.As(err, &refused) {
			return ignoring(ignoring(err, wayback.ErrClosed), changes.ErrInUse)
		}
		why = refused.Error()
	}
	if err := wayback.Close(ctx, source, target, m, why); err != nil {
		return ignoring(err, wayback.ErrClosed)
	}
	c.event(m, "the way back to %s is closed: %s", m.Source, why)
	return nil
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
	for _, m := range openWaysOf(all) {
		why, err := cfg.closeLost(ctx, conns, m, dryRun)
		switch {
		case err != nil:
			errs = append(errs, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Target, Err: err})
		case why != "":
			found = append(found, m.Shard)
		}
	}
	return shards.SetOf(found...), errors.Join(errs...)
}

// closeLost closes a way back if it cannot be used any more, and returns why.
func (c KeepConfig) closeLost(ctx context.Context, conns *hosts.Conns, m ledger.Move, dryRun bool) (why string, err error) {
	target, err := conns.Get(ctx, m.Target)
	if err != nil {
		return "", err
	}
	if why, err = wayback.Lost(ctx, target, m); err != nil || why == "" || dryRun {
		return why, err
	}
	source, err := conns.GetWithLedger(ctx, m.Source)
	if err != nil {
		return "", err
	}
	if err := wayback.Close(ctx, source, target, m, why); err != nil {
		return "", ignoring(err, wayback.ErrClosed)
	}
	c.event(m, "the way back to %s is closed: %s", m.Source, why)
	return why, nil
}

func (c KeepConfig) event(m ledger.Move, format string, args ...any) {
	if c.Events != nil {
		c.Events(progress.Event{Shard: m.Shard, From: m.Source, To: m.Target, Step: ledger.Finished, Kind: progress.WayBack, What: fmt.Sprintf(format, args...)})
	}
}

// openWaysOf returns the moves whose way back is open, and on which no shard is going back.
func openWaysOf(all []ledger.Move) (open []ledger.Move) {
	returning := map[string]bool{}
	for _, m := range all {
		if m.Outcome == ledger.UnderWay && m.Returns != "" {
			returning[m.Returns] = true
		}
	}
	for _, m := range all {
		if !m.BackUntil().IsZero() && !returning[m.ID] {
			open = append(open, m)
		}
	}
	return open
}

// ignoring returns an error, nil if it is a harmless one.
func ignoring(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
