package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "The bench harness: ours beside the other ways, in one run",
		Long: `The bench harness: ours beside the other ways, in one run, taking turns. It needs no
config: it measures on throw-away servers on this machine, or in databases of its own
on the server that KILOSHARD_POSTGRES_DSN names.`,
		RunE: needsCommand,
	}
	cmd.AddCommand(
		a.benchIDsCommand(), a.benchCreateCommand(), a.benchRouteCommand(), a.benchMigrateCommand(), a.benchMapCommand(), a.benchFailoverCommand(), a.benchMoveCommand(),
	)
	return cmd
}

func (a *app) benchCreateCommand() *cobra.Command {
	var cfg bench.CreateConfig
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Creating shards on two hosts, beside a loop inside the servers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Shards < 2 || cfg.Shards > shards.DefaultLayout.MaxShards() {
				return usagef("--shards %d: expected 2 to %d", cfg.Shards, shards.DefaultLayout.MaxShards())
			}
			return a.withServers(cmd.Context(), 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = newHosts(servers)
				report, err := bench.Create(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.print(report, func() {
					rows := [][]string{{"WHAT", ">SECONDS", ">TIMES THE LOOP"}}
					rows = append(
						rows,
						[]string{"loop inside the servers", fmt.Sprintf("%.2f", report.Loop), "1.00"},
						[]string{"kiloshard create", fmt.Sprintf("%.2f", report.Ours), fmt.Sprintf("%.2f", report.VsLoop)},
						[]string{"a second create", fmt.Sprintf("%.2f", report.Again), ""},
						[]string{"kiloshard verify", fmt.Sprintf("%.2f", report.Verify), ""},
					)
					a.table(rows)
					a.say("%s on %s; medians of %d rounds, the ratio's too.", count(report.Shards, "shard"), count(report.Hosts, "host"), report.Rounds)
				})
			})
		},
	}
	cmd.Flags().IntVar(&cfg.Shards, "shards", 4096, "how many shards to create")
	return cmd
}

// plot draws a report into a directory, if there is one.
func (a *app) plot(dir string, report interface {
	Plot(dir string) ([]string, error)
},
) error {
	if dir == "" {
		return nil
	}
	made, err := report.Plot(dir)
	for _, path := range made {
		fmt.Fprintln(a.stderr, "wrote", path)
	}
	return err
}
