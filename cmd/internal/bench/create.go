package bench

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/creation"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func createCommand(a *cli.App) *cobra.Command {
	var cfg creation.Config
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
				report, err := creation.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.Print(report, func() { printCreation(a, report) })
			})
		},
	}
	cmd.Flags().IntVar(&cfg.Shards, "shards", 4096, "how many shards to create")
	return cmd
}

func printCreation(a *cli.App, report *creation.Report) {
	a.Table([][]string{
		{"WHAT", ">SECONDS", ">TIMES THE LOOP"},
		{"loop inside the servers", fmt.Sprintf("%.2f", report.Loop), "1.00"},
		{"kiloshard create", fmt.Sprintf("%.2f", report.Ours), fmt.Sprintf("%.2f", report.VsLoop)},
		{"a second create", fmt.Sprintf("%.2f", report.Again), ""},
		{"kiloshard verify", fmt.Sprintf("%.2f", report.Verify), ""},
	})
	a.Say("%s on %s. Times and the ratio are medians of %d rounds.", cli.Count(report.Shards, "shard"), cli.Count(report.Hosts, "host"), report.Rounds)
}
