package moves

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
)

// DrainCommand is kiloshard drain.
func DrainCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "drain HOST",
		Short: "Moves all shards of a host to the other hosts",
		Long: `Moves all shards of a host to the other hosts while services write, and spreads them by size, writes and weight.
After an interrupt, run "move resume" and then this again. --dry-run prints the plan.

` + weighed,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMoves(cmd.Context(), a, &f, "", func(ctx context.Context, cfg move.RunConfig) error {
				if err := knownHost(cfg.Map, "HOST", args[0]); err != nil {
					return err
				}
				if len(cfg.Map.Hosts()) < 2 {
					return cli.Usagef("drain %s: expected another host in the map", args[0])
				}
				return moveTo(ctx, a, cfg, f.dryRun, f.writesOver, func(u usage) map[shards.Number]string {
					return balance.Drain(cfg.Map, args[0], u.bytes, u.writes)
				})
			})
		},
		ValidArgsFunction: a.CompleteHost,
	}
	f.add(cmd)
	f.addWayBack(cmd)
	f.addWritesOver(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan, and move nothing")
	return cmd
}

// RebalanceCommand is kiloshard rebalance.
func RebalanceCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	var run bool
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Prints or runs the moves that even out the hosts by weight",
		Long: `Prints the moves that even out the hosts by weight, with few bytes moved. --run runs them while services write. After
an interrupt, run "move resume" and then this again.

` + weighed,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onMoves(cmd.Context(), a, &f, "", func(ctx context.Context, cfg move.RunConfig) error {
				return moveTo(ctx, a, cfg, !run, f.writesOver, func(u usage) map[shards.Number]string {
					return balance.Rebalance(cfg.Map, u.bytes, u.writes)
				})
			})
		},
	}
	f.add(cmd)
	f.addWayBack(cmd)
	f.addWritesOver(cmd)
	cmd.Flags().BoolVar(&run, "run", false, "move the shards")
	return cmd
}
