package bench

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/routes"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func routeCommand(a *cli.App) *cobra.Command {
	cfg := routes.Config{Progress: progress(a)}
	var seconds float64
	var plots string
	cmd := &cobra.Command{
		Use:   "route",
		Short: "The router beside plain pgxpool",
		Long: `Compares the router with a plain pgxpool: the same statements on the same tables with 16
connections to a host on each side. pgxpool has one schema, its statements name it, and
it prepares them as it does by default. Every row that is read is checked.

The parts, which --only selects, and the goal of the router in each:

  lone        one goroutine: as fast as pgxpool; a lone caller does not pay for others
  many        more goroutines than connections: more calls a second than pgxpool, with no
              worse p99; on one shard and spread over 16
  delay       the same with 1 ms of network delay each way: many times as many calls
  slow        one call in 500 takes 50 ms: p99 of all others no worse than pgxpool's
  beside      selects beside callers of another shard who wait for a lock, leave, or read
              slowly: p99.9 at most twice that without them, which is plain here
  inserts     every call waits for the disk: no slower than pgxpool
  observed    with tracing and metrics at least 0.9 of the calls a second; here plain is the
              router without them; bare spans are the cost of OpenTelemetry alone
  schemas     ten statements over 1,024 and 4,096 schemas: latency near that of one schema,
              and well below that of a pgxpool over all schemas; memory of the sessions
  starvation  thousands of goroutines on two hosts: a longest wait no worse than pgxpool's,
              and nothing left after Close
  swaps       the map changes all the time: at least 0.95 of the calls a second of an
              unchanged map; no call fails or reaches a host without its shard

Ratios are ours to plain: more is better for calls a second, less for times. --plot DIR
draws the calls a second of the part many, for 1 to 512 goroutines unless --goroutines
says otherwise, as SVG and PNG.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, routes.Parts()); err != nil {
				return err
			}
			if err := checkSeconds("seconds", seconds); err != nil {
				return err
			}
			minimums := []minimum{{"rounds", cfg.Rounds, 1}, {"swaps", cfg.Swaps, 1}, {"crowd", cfg.Crowd, 1}}
			for _, n := range cfg.Goroutines {
				minimums = append(minimums, minimum{"goroutines", n, 1})
			}
			if err := checkMinimums(minimums...); err != nil {
				return err
			}
			for _, n := range cfg.Shards {
				if n < 16 || n > shards.DefaultLayout.MaxShards() {
					return cli.Usagef("--shards %d: expected 16 to %d", n, shards.DefaultLayout.MaxShards())
				}
			}
			cfg.Turn = time.Duration(seconds * float64(time.Second))
			if plots != "" && !cmd.Flags().Changed("goroutines") {
				cfg.Goroutines = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
			}
			return benchRoute(a, cmd, cfg, plots)
		},
	}
	onlyFlag(cmd, &cfg.Only, routes.Parts())
	cmd.Flags().Float64Var(&seconds, "seconds", 1, "how long each side's turn takes in a round")
	cmd.Flags().IntVar(&cfg.Rounds, "rounds", 5, "in each of which all sides take a turn")
	cmd.Flags().IntSliceVar(&cfg.Goroutines, "goroutines", []int{16, 64, 256}, "of the part many")
	cmd.Flags().IntSliceVar(&cfg.Shards, "shards", []int{1024, 4096}, "of the part schemas; with the first, pgxpool over all schemas too")
	cmd.Flags().IntVar(&cfg.Crowd, "crowd", 8192, "goroutines of the part starvation")
	cmd.Flags().IntVar(&cfg.Swaps, "swaps", 10_000, "map changes of the part swaps, one every 2 ms")
	cmd.Flags().StringVar(&plots, "plot", "", "a directory for the plot")
	return cmd
}

func benchRoute(a *cli.App, cmd *cobra.Command, cfg routes.Config, plots string) error {
	servers := throwaway.LocalConfig()
	servers.Settings = map[string]string{"fsync": "on"}
	return throwaway.WithServersOf(cmd.Context(), a, 2, servers, func(servers []*localpg.Server) error {
		cfg.NewHosts = throwaway.NewHosts(servers)
		report, err := routes.Run(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if err := plot(a, plots, report); err != nil {
			return err
		}
		return a.Print(report, func() { printRoutes(a, report) })
	})
}

func printRoutes(a *cli.App, report *routes.Report) {
	rows := [][]string{{"PART", "WHAT", ">GOROUTINES", "METRIC", ">OURS", ">PLAIN", ">RATIO"}}
	for _, f := range report.Rows {
		row := []string{f.Part, f.What, "", f.Metric, figure(f.Ours), "", ""}
		if f.Goroutines > 0 {
			row[2] = cli.Thousands(f.Goroutines)
		}
		if f.Plain != nil {
			row[5] = figure(*f.Plain)
		}
		if f.Ratio != nil {
			row[6] = fmt.Sprintf("%.2f", *f.Ratio)
		}
		rows = append(rows, row)
	}
	a.Table(rows)
	a.Say("Figures and ratios, which are ours to plain, are medians of %s; each side's turn takes %g s.", cli.Count(report.Rounds, "round"), report.Turn)
	fsync := "on"
	if !report.Fsync {
		fsync = "off, so that inserts did not wait for the disk"
	}
	a.Say("PostgreSQL %s, fsync %s; %d connections to a host on each side.", report.Server, fsync, report.Conns)
}
