package bench

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/stores"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
)

func storesCommand(a *cli.App) *cobra.Command {
	cfg := stores.Config{Progress: progress(a)}
	cmd := &cobra.Command{
		Use:   "stores",
		Short: "Objects and entities, beside statements written by hand for pgx",
		Long: `Compares objects and entities with statements written by hand for pgx on the same tables:
reads and writes on one shard, GetMany over all shards beside one batch for each host, and
how fast the cleaner fills an index.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, stores.Parts()); err != nil {
				return err
			}
			if err := checkMinimums(
				minimum{"shards", cfg.Shards, 2}, minimum{"rounds", cfg.Rounds, 1}, minimum{"calls", cfg.Calls, 4},
				minimum{"callers", cfg.Callers, 1}, minimum{"ids", cfg.IDs, 1}, minimum{"entities", cfg.Entities, 16},
			); err != nil {
				return err
			}
			return throwaway.WithServers(cmd.Context(), a, 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = throwaway.NewHosts(servers)
				report, err := stores.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.Print(report, func() { printStores(a, report) })
			})
		},
	}
	onlyFlag(cmd, &cfg.Only, stores.Parts())
	cmd.Flags().IntVar(&cfg.Shards, "shards", 200, "over two hosts")
	cmd.Flags().IntVar(&cfg.Rounds, "rounds", 9, "in which both sides take their turn")
	cmd.Flags().IntVar(&cfg.Calls, "calls", 4000, "of each side in a round")
	cmd.Flags().IntVar(&cfg.Callers, "callers", 16, "at the same time")
	cmd.Flags().IntVar(&cfg.IDs, "ids", 500, "of GetMany")
	cmd.Flags().IntVar(&cfg.Entities, "entities", 400_000, "with which an index is filled")
	return cmd
}

func printStores(a *cli.App, report *stores.Report) {
	rows := [][]string{{"WHAT", ">OURS, US", ">BY HAND, US", ">RATIO", ">MESSAGES", ">BY HAND"}}
	for _, f := range report.Points {
		rows = append(rows, []string{f.What, fmt.Sprintf("%.1f", f.Ours), fmt.Sprintf("%.1f", f.ByHand), fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.2f", f.OurMessages), fmt.Sprintf("%.2f", f.ByHandMessages)})
	}
	a.Table(rows)
	a.Say("%s, %s. Microseconds and messages are per call, over all callers; times and ratios are medians of %d rounds.",
		cli.Count(report.Callers, "caller"), cli.Count(report.Shards, "shard"), report.Rounds)
	if report.Filled > 0 {
		a.Say("The cleaner fills an index with %d entities at %.0f a second, at %.0f with the check of its rows afterwards.", report.Filled, report.Rate, report.WithCheck)
	}
}
