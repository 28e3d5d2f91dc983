package moves

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// DrainCommand is kiloshard drain.
func DrainCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "drain HOST",
		Short: "Moves all shards of a host to the others, before it is taken away",
		Long: `Moves all shards of a host to the others while services write, spread over them by size and weight. After an interrupt, run
"move resume" and then this again. --dry-run prints the plan.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMoves(cmd.Context(), a, &f, "", func(ctx context.Context, cfg move.Config) error {
				if err := knownHost(cfg.Map, "HOST", args[0]); err != nil {
					return err
				}
				if len(cfg.Map.Hosts()) < 2 {
					return cli.Usagef("drain %s: expected another host in the map", args[0])
				}
				return moveTo(ctx, a, cfg, f.dryRun, func(sizes map[shards.Number]int64) map[shards.Number]string {
					return move.Drain(cfg.Map, args[0], sizes)
				})
			})
		},
		ValidArgsFunction: a.CompleteHost,
	}
	f.add(cmd)
	f.addWayBack(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan, and move nothing")
	return cmd
}

// RebalanceCommand is kiloshard rebalance.
func RebalanceCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	var run bool
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Prints, or runs, the moves that even out the hosts by weight",
		Long: `Prints the moves that even out the hosts by weight, with few bytes moved: sizes are those of the last vacuum or
analyze of each table. --run runs them while services write. After an interrupt, run "move resume" and then this again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onMoves(cmd.Context(), a, &f, "", func(ctx context.Context, cfg move.Config) error {
				return moveTo(ctx, a, cfg, !run, func(sizes map[shards.Number]int64) map[shards.Number]string {
					return move.Rebalance(cfg.Map, sizes)
				})
			})
		},
	}
	f.add(cmd)
	f.addWayBack(cmd)
	cmd.Flags().BoolVar(&run, "run", false, "move the shards")
	return cmd
}

// balancePlan is the JSON of the commands that move shards to several hosts.
type balancePlan struct {
	Bytes int64         `json:"bytes"`
	Moves []balanceMove `json:"moves"`
}

type balanceMove struct {
	Shard  shards.Number `json:"shard"`
	Source string        `json:"source"`
	Target string        `json:"target"`
	Bytes  int64         `json:"bytes"`
}

// moveTo moves shards to the hosts of a plan, or prints it.
func moveTo(ctx context.Context, a *cli.App, cfg move.Config, dryRun bool, plan func(sizes map[shards.Number]int64) map[shards.Number]string) error {
	sizes, err := move.Sizes(ctx, cfg.Map)
	if err != nil {
		return err
	}
	cfg.Targets = plan(sizes)
	numbers := slices.Sorted(maps.Keys(cfg.Targets))
	cfg.Shards = shards.SetOf(numbers...)
	if !dryRun && len(numbers) > 0 {
		return moveAndKeep(ctx, a, cfg, "moved")
	}
	result := balancePlan{Moves: []balanceMove{}}
	by := map[[2]string][]shards.Number{}
	for _, n := range numbers {
		m := balanceMove{n, cfg.Map.Host(n).Name, cfg.Targets[n], sizes[n]}
		result.Moves, result.Bytes = append(result.Moves, m), result.Bytes+m.Bytes
		by[[2]string{m.Source, m.Target}] = append(by[[2]string{m.Source, m.Target}], n)
	}
	return a.Print(result, func() {
		if len(numbers) == 0 {
			a.Say("nothing to move")
			return
		}
		rows := [][]string{{"FROM", "TO", ">SHARDS", ">SIZE", "WHICH"}}
		for _, hosts := range slices.SortedFunc(maps.Keys(by), func(x, y [2]string) int { return slices.Compare(x[:], y[:]) }) {
			var bytes int64
			for _, n := range by[hosts] {
				bytes += sizes[n]
			}
			rows = append(rows, []string{hosts[0], hosts[1], cli.Thousands(len(by[hosts])), cli.Megabytes(bytes), a.ShortSet(shards.SetOf(by[hosts]...))})
		}
		a.Table(rows)
		a.Say("%s to be moved, %s; nothing is changed", cli.Count(len(numbers), "shard"), cli.Megabytes(result.Bytes))
	})
}
