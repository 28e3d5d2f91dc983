package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/routes"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func routeCommand(a *cli.App) *cobra.Command {
	cfg := routes.Config{Progress: func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }}
	var seconds float64
	var plots string
	cmd := &cobra.Command{
		Use:   "route",
		Short: "The router beside plain pgxpool",
		Long: `Compares the router with a plain pgxpool: the same statements on the same tables with 16
connections to a host on each side. pgxpool has one schema, its statements name it, and
it prepares them as it does by default. All rows that are read are checked.

The parts, which --only selects, and what is wanted of the router in each:

  decision    by key and by ID to the shard: nanoseconds, and no allocation, on 64 hosts
              as on 2
  lone        one goroutine: as fast as pgxpool, for a lone caller must not pay for others
  many        more goroutines than connections: more calls a second than pgxpool, with no
              worse p99; on one shard and spread over 16
  delay       the same with 1 ms of network delay each way: many times as many calls
  slow        one call in 500 takes 50 ms: p99 of all others no worse than pgxpool's
  beside      selects beside callers of another shard who wait for a lock, leave, or read
              slowly: p99.9 at most twice that without them, which is plain here
  inserts     every call waits for the disk: no slower than pgxpool
  observed    with tracing and metrics at least 0.9 of the calls a second; here, plain is the
              router without them; bare spans are what OpenTelemetry takes by itself
  schemas     ten statements over 1,024 and 4,096 schemas: latency near that of one schema,
              and well below that of a pgxpool over all schemas; memory of the sessions
  starvation  thousands of goroutines on two hosts: a longest wait no worse than pgxpool's,
              and nothing left after Close
  getmany     500 IDs of 200 shards on two hosts: a third of the time of a loop, also far away
  swaps       the map changes all the time: 0.95 of the calls a second of a still one at least,
              and no call fails or comes to a host that does not have the shard
  pgbouncer   two clients behind a PgBouncer in transaction mode: no row of another shard
  replicas    readers with one replica beside the primary alone; then with a replica that
              stalls in one call of 200, with hedging beside without; turns of 0.4 times
              the length

Ratios are ours to plain, the median of those of the rounds: of calls a second more is
better, of times less. --plot DIR draws the calls a second of the part many, for 1 to 512
goroutines unless --goroutines says otherwise, as SVG and PNG.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, routes.Parts()); err != nil {
				return err
			}
			switch {
			case !(seconds > 0 && seconds <= 3600):
				return cli.Usagef("--seconds %g: expected more than 0, and 3600 at most", seconds)
			case cfg.Rounds < 1:
				return cli.Usagef("--rounds %d: expected 1 or more", cfg.Rounds)
			case cfg.Swaps < 1:
				return cli.Usagef("--swaps %d: expected 1 or more", cfg.Swaps)
			case cfg.Crowd < 1:
				return cli.Usagef("--crowd %d: expected 1 or more", cfg.Crowd)
			}
			for _, n := range cfg.Goroutines {
				if n < 1 {
					return cli.Usagef("--goroutines %d: expected 1 or more", n)
				}
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
	cmd.Flags().Float64Var(&seconds, "seconds", 1, "how long one side's turn takes in each round")
	cmd.Flags().IntVar(&cfg.Rounds, "rounds", 5, "in each of which both sides take a turn")
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
		cfg.NewStandby = throwaway.NewStandby(servers[0])
		report, err := routes.Run(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if err := plot(a, plots, report); err != nil {
			return err
		}
		return a.Print(report, func() { printRouteReport(a, report) })
	})
}

func printRouteReport(a *cli.App, report *routes.Report) {
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
	a.Say("Medians of %s of %g s for each side, the ratios' too, which are ours to plain.", cli.Count(report.Rounds, "round"), report.Turn)
	if report.Server != "" {
		fsync := "on"
		if !report.Fsync {
			fsync = "off, so that inserts did not wait for the disk"
		}
		a.Say("PostgreSQL %s, fsync %s; %d connections to a host on each side.", report.Server, fsync, report.Conns)
	}
	for _, part := range report.LeftOut {
		a.Say("Left out: %s.", part)
	}
}

// figure returns a number with three digits or so.
func figure(v float64) string {
	switch {
	case v == math.Trunc(v) || v >= 1000:
		return cli.Thousands(int(math.Round(v)))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
