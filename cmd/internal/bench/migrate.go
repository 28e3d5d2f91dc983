package bench

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/migrations"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func migrateCommand(a *cli.App) *cobra.Command {
	cfg := migrations.Config{Progress: progress(a)}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "One migration over all shards of two hosts, beside tern in a loop",
		Long: `Runs one migration, a table with an index, over the shards of two hosts in several ways:
kiloshard migrate up; tern's own Migrator in a loop; a loop like that of goose, with a
transaction for each shard and a round trip for each statement; and loops inside the
servers. One loop in each server is the floor.

migrate up migrates all shards. The other ways, some of them slow, migrate --sample
shards of each host, and their times are scaled up. With --delay everything is measured
again over a network with that delay each way, made by toxiproxy, with half the sample.
All ways start with the same catalogs: every round uses clones of the same databases.

Every way runs as its users run it: each commit of tern and of the goose-style loop waits
for the disk; the other ways wait once on each host, for the last commit, which covers
all before it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.Shards < 8 || cfg.Shards > shards.DefaultLayout.MaxShards():
				return cli.Usagef("--shards %d: expected 8 to %d", cfg.Shards, shards.DefaultLayout.MaxShards())
			case cfg.Delay < 0 || cfg.Delay%time.Millisecond != 0:
				return cli.Usagef("--delay %s: expected whole milliseconds, or 0 for none", cfg.Delay)
			}
			if err := checkMinimums(minimum{"workers", cfg.Workers, 1}, minimum{"sample", cfg.Sample, 1}); err != nil {
				return err
			}
			return throwaway.WithServers(cmd.Context(), a, 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = throwaway.NewHosts(servers)
				report, err := migrations.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.Print(report, func() { printMigrations(a, report) })
			})
		},
	}
	cmd.Flags().IntVar(&cfg.Shards, "shards", 4096, "how many shards to migrate")
	cmd.Flags().IntVar(&cfg.Workers, "workers", 4, "sessions to each host")
	cmd.Flags().IntVar(&cfg.Sample, "sample", 256, "shards of each host that each of the other ways migrates, at most a quarter of them")
	cmd.Flags().DurationVar(&cfg.Delay, "delay", time.Millisecond, "of the network, each way, for a second table; 0 for none")
	return cmd
}

func printMigrations(a *cli.App, report *migrations.Report) {
	for i, table := range report.Tables {
		if i > 0 {
			a.Say("")
		}
		network := "without network delay"
		if table.Delay > 0 {
			network = fmt.Sprintf("with %g ms of network delay each way", table.Delay)
		}
		a.Say("%s (a round trip takes %.2f ms)", network, table.RoundTrip)
		rows := [][]string{{"WAY", ">SECONDS", ">MS PER SHARD", ">TIMES AS FAST AS TERN", ">TIMES THE LOOP", ">SHARDS MEASURED"}}
		for _, f := range table.Ways {
			seconds := fmt.Sprintf("%.2f", f.Seconds)
			if f.Measured < report.Shards {
				seconds = "~" + seconds
			}
			rows = append(rows, []string{
				f.Way, seconds, fmt.Sprintf("%.2f", f.PerShard), fmt.Sprintf("%.2f", f.VsTern), fmt.Sprintf("%.2f", f.VsFloor), cli.Thousands(f.Measured),
			})
		}
		rows = append(
			rows,
			[]string{"a second migrate up", fmt.Sprintf("%.2f", table.Again), "", "", "", cli.Thousands(report.Shards)},
			[]string{"kiloshard migrate status", fmt.Sprintf("%.2f", table.Status), "", "", "", cli.Thousands(report.Shards)},
		)
		a.Table(rows)
	}
	a.Say(`
%s on %s, PostgreSQL %s, %s to each host. Times and ratios are medians of %d rounds.
~ is scaled up from the shards that were measured. Every way runs as its users run it: each commit of tern and of the
goose-style loop waits for the disk; the other ways wait once on each host, for the last commit, which covers all before it.`,
		cli.Count(report.Shards, "shard"), cli.Count(report.Hosts, "host"), report.Server, cli.Count(report.Workers, "session"), report.Rounds)
	if report.PeakRSS > 0 {
		a.Say("Memory of this process during migrate up: %d MB at most.", report.PeakRSS>>20)
	}
	if report.SessionBytes > 0 {
		a.Say("Memory of one of its Postgres sessions: %d MB at most.", report.SessionBytes>>20)
	}
}
