package moves

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
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
		Short: "Keeps the ways back of moved shards short, and closes them in time",
		Long: `Applies what is written to moved shards to their old schemas, which stay behind their fences, so that little WAL is kept
for "move rollback"; and closes each way back whose time is over, whose WAL is more than it may be, or which a change of the
tables has made impossible. "move --rollback-for" goes on with this; after an interrupt this command does. It ends once no way
back is open.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := ""
			if len(args) > 0 {
				set = args[0]
			}
			f.cfg.MaxPause, f.cfg.LockTimeout, f.cfg.PerHost, f.rollbackWAL = time.Second, time.Second, 1, 1 // it needs none of them
			return onMoves(cmd.Context(), a, &f, set, func(ctx context.Context, cfg move.Config) error { return keep(ctx, a, cfg) })
		},
	}
}

// moveAndKeep moves shards, and then keeps their ways back if they are to have any.
func moveAndKeep(ctx context.Context, a *cli.App, cfg move.Config, did string) error {
	var done shards.Set
	err := runMoves(ctx, a, cfg, did, func(ctx context.Context, cfg move.Config) (report move.Report, err error) {
		report, err = move.Run(ctx, cfg)
		done = report.Done
		return report, err
	})
	if cfg.RollbackFor > 0 && done.Len() > 0 && ctx.Err() == nil {
		cfg.Shards = done
		fmt.Fprintf(a.Stderr, "shards %s can go back until about %s, by kiloshard move rollback; their way back is kept meanwhile\n", done, cli.Stamp(time.Now().Add(cfg.RollbackFor)))
		if kept := keep(ctx, a, cfg); err == nil {
			err = kept
		}
	}
	return err
}

// keep keeps ways back until there are none, or until it is interrupted.
func keep(ctx context.Context, a *cli.App, cfg move.Config) error {
	err := move.Keep(ctx, cfg)
	if err == nil && ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, "ways back are left open, and WAL piles up for them: see kiloshard move keep, move rollback, move clean")
	} else if err == nil {
		a.Say("no way back is open")
	}
	return err
}

// wayBackOf says how a move that has ended can be rolled back; empty if it cannot.
func wayBackOf(m move.Move) string {
	switch until := m.BackUntil(); {
	case m.Outcome != move.Moved || m.Back == nil:
		return ""
	case m.Back.Closed != "":
		return "closed: " + m.Back.Closed
	case time.Now().After(until):
		return "its time is over, see move clean"
	default:
		return "until " + cli.Stamp(until)
	}
}
