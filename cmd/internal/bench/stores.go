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
	cfg := stores.Config{Progress: func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }}
	cmd := &cobra.Command{
		Use:   "stores",
		Short: "Objects and entities, beside statements written by hand for pgx",
		Long: `Objects and entities, beside statements written by hand for pgx on the same tables: reads and writes on one
shard, GetMany over all shards beside a batch a host, and how fast the cleaner fills an index.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, stores.Parts()); err != nil {
				return err
			}
			for _, flag := range []struct {
				name         string
				value, least int
			}{{"shards", cfg.Shards, 2}, {"rounds", cfg.Rounds, 1}, {"calls", cfg.Calls, 4}, {"callers", cfg.Callers, 1}, {"ids", cfg.IDs, 1}, {"entities", cfg.Entities, 16}} {
				if flag.value < flag.least {
					return cli.Usagef("--%s %d: expected %d or more", flag.name, flag.value, flag.least)
				}
			}
			return throwaway.WithServers(cmd.Context(), a, 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = throwaway.NewHosts(servers)
				report, err := stores.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.Print(report, func() {
					rows := [][]string{{"WHAT", ">OURS, US", ">BY HAND, US", ">RATIO", ">MESSAGES", ">BY HAND"}}
					for _, f := range report.Points {
						rows = append(rows, []string{f.What, fmt.Sprintf("%.1f", f.Ours), fmt.Sprintf("%.1f", f.ByHand), fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.2f", f.OurMessages), fmt.Sprintf("%.2f", f.ByHandMessages)})
					}
					a.Table(rows)
					a.Say("%s, %s in all; microseconds and messages a call of all together; medians of %d rounds, the ratios' too.", cli.Count(report.Callers, "caller"), cli.Count(report.Shards, "shard"), report.Rounds)
					if report.Filled == 0 {
						return
					}
					a.Say("The cleaner fills an index at %.0f entities a second (%d), and at %.0f with a look at each of its rows afterwards.", report.Rate, report.Filled, report.WithCheck)
				})
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
