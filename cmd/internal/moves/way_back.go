package moves

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// addWayBack adds the flags of moves that can be rolled back.
func (f *moveFlags) addWayBack(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.cfg.RollbackFor, "rollback-for", 0, "for how long a shard can go back by move rollback, without a copy and with what was written since (default not at all)")
	flags.Int64Var(&f.rollbackWAL, "rollback-wal", 4096, "MB of WAL that the target may keep for it, past which the way back is closed")
}

// keepCommand keeps ways back.
func keepCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	return &cobra.Command{
		Use:   "keep [SHARDS]",
		Short: "Keeps old schemas up to date, for move rollback",
		Long: `Applies the writes of moved shards to their old schemas, which stay behind their fences, so that the new host keeps little
WAL for "move rollback". It closes a way back when its time is over, when its WAL exceeds --rollback-wal, or when a change of
the tables makes it impossible. "move --rollback-for" does this after the move; after an interrupt, run this command. It
ends when no way back is open.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := ""
			if len(args) > 0 {
				set = args[0]
			}
			f.cfg.MaxPause, f.cfg.LockTimeout, f.cfg.PerHost, f.rollbackWAL = time.Second, time.Second, 1, 1 // it needs none of them
			return onMoves(cmd.Context(), a, &f, set, func(ctx context.Context, cfg move.RunConfig) error { return keep(ctx, a, cfg) })
		},
	}
}

// moveAndKeep moves shards, and keeps their ways back if they are to have any: beside the moves, and after them.
func moveAndKeep(ctx context.Context, a *cli.App, cfg move.RunConfig, did string) error {
	a.Audit(ctx, cfg.Map.Hosts(), nil)
	var done shards.Set
	err := runMoves(ctx, a, cfg, did, func(ctx context.Context, cfg move.RunConfig) (report move.Report, err error) {
		if cfg.RollbackFor > 0 {
			defer keepBeside(ctx, &cfg)()
		}
		report, err = move.Run(ctx, cfg)
		done = report.Done
		return report, err
	})
	if cfg.RollbackFor <= 0 || done.Len() == 0 {
		return err
	}
	fmt.Fprintf(a.Stderr, "shards %s can go back until about %s, by kiloshard move rollback\n", a.ShortSet(done), cli.Stamp(time.Now().Add(cfg.RollbackFor)))
	if ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, leftOpen)
		return err
	}
	cfg.Shards = done
	if kept := keep(ctx, a, cfg); err == nil {
		err = kept
	}
	return err
}

// resume continues moves, and says which of them have a way back that nobody keeps.
func resume(a *cli.App) func(context.Context, move.Config) (move.Report, error) {
	return func(ctx context.Context, cfg move.Config) (move.Report, error) {
		report, err := move.Resume(ctx, cfg)
		all, _ := move.Status(ctx, cfg.Map) // what a host that does not answer has is not said
		var open []shards.Number
		for _, m := range all {
			if report.Done.Has(m.Shard) && !m.BackUntil().IsZero() {
				open = append(open, m.Shard)
			}
		}
		if len(open) > 0 {
			fmt.Fprintf(a.Stderr, "shards %s can go back by kiloshard move rollback; %s\n", a.ShortSet(shards.SetOf(open...)), leftOpen)
		}
		return report, err
	}
}

// keepBeside keeps the ways back of shards that have moved while others still do. The returned function ends that, and waits for it.
func keepBeside(ctx context.Context, cfg *move.RunConfig) (end func()) {
	var mu sync.Mutex
	events := cfg.Events
	cfg.Events = func(e progress.Event) {
		mu.Lock()
		defer mu.Unlock()
		if events != nil {
			events(e)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var kept sync.WaitGroup
	beside := move.KeepConfig{Map: cfg.Map, Shards: cfg.Shards, Events: cfg.Events, Logger: cfg.Logger}
	kept.Go(func() { _ = move.KeepBeside(ctx, beside) }) // a config that is wrong is the move's error, too
	return func() {
		cancel()
		kept.Wait()
	}
}

// lookLimit is how long a command may look for ways back that are over.
const lookLimit = 10 * time.Second

// closeLost closes ways back that are of no use any more, so that no slot keeps WAL for one, or says that it would.
func closeLost(ctx context.Context, a *cli.App, cfg move.RunConfig, dryRun bool) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	lost, err := move.CloseLost(ctx, move.KeepConfig{Map: cfg.Map, Events: cfg.Events, Logger: cfg.Logger}, dryRun)
	if lost.Len() > 0 && dryRun {
		a.Warn("the way back of %s (%s) is over: without --dry-run it would be closed", cli.Count(lost.Len(), "shard"), a.ShortSet(lost))
	}
	if err != nil && ctx.Err() == nil { // the command itself says which host does not answer
		a.Warn("ways back: %v", err)
	}
}

// leftOpen is said when nobody keeps ways back any more.
const leftOpen = "ways back are left open, and WAL piles up for them: see kiloshard move keep, move rollback, move clean"

// keep keeps ways back until there are none, or until it is interrupted.
func keep(ctx context.Context, a *cli.App, cfg move.RunConfig) error {
	err := move.Keep(ctx, move.KeepConfig{Map: cfg.Map, Shards: cfg.Shards, Events: cfg.Events, Logger: cfg.Logger})
	if err == nil && ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, leftOpen)
	} else if err == nil {
		a.Say("no way back is open")
	}
	return err
}

// wayBackOf says how a move that has ended can be rolled back; empty if it cannot.
func wayBackOf(m ledger.Move) string {
	switch until := m.BackUntil(); {
	case m.Outcome != ledger.Moved || m.Back == nil:
		return ""
	case m.Back.Closed != "":
		return "closed: " + m.Back.Closed
	case time.Now().After(until):
		return "its time is over: the next command that moves shards closes it"
	default:
		return "until " + cli.Stamp(until)
	}
}
