// Package bench is kiloshard-lab bench: what package bench of the module measures, as tables, JSON and pictures.
package bench

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// Command is kiloshard-lab bench.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measures Kiloshard beside its peers, in one run",
		Long: `Measures Kiloshard beside its peers, which take turns in one run. It needs no config: it
uses throw-away servers on this machine, or databases of its own on the server that
KILOSHARD_POSTGRES_DSN names.`,
		RunE: cli.NeedsCommand,
	}
	cmd.AddCommand(
		idsCommand(a), createCommand(a), routeCommand(a), migrateCommand(a), moveCommand(a), storesCommand(a),
	)
	return cmd
}

func createCommand(a *cli.App) *cobra.Command {
	var cfg bench.CreateConfig
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Creates shards on two hosts, beside a loop inside the servers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Shards < 2 || cfg.Shards > shards.DefaultLayout.MaxShards() {
				return cli.Usagef("--shards %d: expected 2 to %d", cfg.Shards, shards.DefaultLayout.MaxShards())
			}
			return throwaway.WithServers(cmd.Context(), a, 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = throwaway.NewHosts(servers)
				report, err := bench.Create(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.Print(report, func() {
					rows := [][]string{{"WHAT", ">SECONDS", ">TIMES THE LOOP"}}
					rows = append(
						rows,
						[]string{"loop inside the servers", fmt.Sprintf("%.2f", report.Loop), "1.00"},
						[]string{"kiloshard create", fmt.Sprintf("%.2f", report.Ours), fmt.Sprintf("%.2f", report.VsLoop)},
						[]string{"a second create", fmt.Sprintf("%.2f", report.Again), ""},
						[]string{"kiloshard verify", fmt.Sprintf("%.2f", report.Verify), ""},
					)
					a.Table(rows)
					a.Say("%s on %s; medians of %d rounds, the ratio's too.", cli.Count(report.Shards, "shard"), cli.Count(report.Hosts, "host"), report.Rounds)
				})
			})
		},
	}
	cmd.Flags().IntVar(&cfg.Shards, "shards", 4096, "how many shards to create")
	return cmd
}

// plot draws a report into a directory, if there is one.
func plot(a *cli.App, dir string, report interface {
	Plot(dir string) ([]string, error)
},
) error {
	if dir == "" {
		return nil
	}
	made, err := report.Plot(dir)
	for _, path := range made {
		fmt.Fprintln(a.Stderr, "wrote", path)
	}
	return err
}
