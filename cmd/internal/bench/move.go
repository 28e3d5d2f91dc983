package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/moves"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
)

func moveCommand(a *cli.App) *cobra.Command {
	cfg := moves.Config{Progress: func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }}
	var turn, hold float64
	var rate int64
	cmd := &cobra.Command{
		Use:   "move",
		Short: "What services notice while a shard moves",
		Long: `A shard moves to another host and back while services write to it and read, as fast as they
can, and at a slower pace to other shards of both hosts. Before each move the same tables
are copied by a bare CREATE SUBSCRIPTION, under the same load. Each round has its own rows:
they are looked for afterwards, and taken away. wal_retrieve_retry_interval is 1 s: Postgres 15
begins no two subscriptions within it, which would be the second one's loss. There is WAL of before to
write over, as on a host that has run for some time.

The parts, which --only selects, and what is wanted in each:

  table   a shard of one table: the longest stall seen by any client under 40 ms in the median
          move and 150 ms in the worst; no failed call, no row lost or doubled, IDs that rise;
          1.3 times as long as the bare copy at most
  tables  the same rows in ten tables
  rate    one table again, of which --rate is copied in a second: the p99.9 of other shards is
          twice the usual at most, which takes a rate
  lock    the same while a transaction holds a row for 25 s: no client waits for longer than
          600 ms, and the move ends well once it may
  drain   the same rows in --shards shards of a host, which all leave it for two others: no
          failed call, no row lost or doubled`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, moves.Parts()); err != nil {
				return err
			}
			for _, flag := range []struct {
				name         string
				value, least int
			}{{"rows", cfg.Rows, 1000}, {"moves", cfg.Moves, 1}, {"callers", cfg.Callers, 1}, {"rate", int(rate), 1}, {"shards", cfg.Shards, 2}} {
				if flag.value < flag.least {
					return cli.Usagef("--%s %d: expected %d or more", flag.name, flag.value, flag.least)
				}
			}
			for name, value := range map[string]float64{"turn": turn, "hold": hold} {
				if !(value > 0 && value <= 3600) {
					return cli.Usagef("--%s %g: expected more than 0, and 3600 at most", name, value)
				}
			}
			cfg.Rate = rate * 1e6
			cfg.Turn, cfg.Hold = time.Duration(turn*float64(time.Second)), time.Duration(hold*float64(time.Second))
			return benchMove(cmd.Context(), a, cfg)
		},
	}
	onlyFlag(cmd, &cfg.Only, moves.Parts())
	cmd.Flags().IntVar(&cfg.Rows, "rows", 1_000_000, "of the shard")
	cmd.Flags().IntVar(&cfg.Moves, "moves", 10, "to and fro")
	cmd.Flags().IntVar(&cfg.Callers, "callers", 4, "so many write to the shard, and so many read")
	cmd.Flags().IntVar(&cfg.Shards, "shards", 100, "of the host, in the part drain")
	cmd.Flags().Float64Var(&turn, "turn", 2, "seconds of the load before each move")
	cmd.Flags().Int64Var(&rate, "rate", 10, "MB that are copied in a second, in the part rate")
	cmd.Flags().Float64Var(&hold, "hold", 25, "seconds for which a transaction holds a row, in the part lock")
	return cmd
}

func benchMove(ctx context.Context, a *cli.App, cfg moves.Config) error {
	servers := throwaway.LocalConfig()
	servers.Settings = map[string]string{"fsync": "on", "wal_level": "logical", "min_wal_size": "3GB", "max_wal_size": "4GB", "wal_retrieve_retry_interval": "1s"}
	return throwaway.WithServersOf(ctx, a, 3, servers, func(servers []*localpg.Server) error {
		cfg.NewHosts = throwaway.NewHosts(servers)
		report, err := moves.Run(ctx, cfg)
		if err != nil {
			return err
		}
		return a.Print(report, func() { printMoveReport(a, report) })
	})
}

func printMoveReport(a *cli.App, report *moves.Report) {
	for i, f := range report.Parts {
		if i > 0 {
			a.Say("")
		}
		rows := [][]string{{"PART", "WHAT", ">MEDIAN", ">WORST"}}
		add := func(what string, values []float64) {
			rows = append(rows, []string{f.Part, what, figure(stats.Median(values)), figure(slices.Max(values))})
		}
		one := func(what, value string) { rows = append(rows, []string{f.Part, what, value, ""}) }
		add("longest stall of a client, ms", f.Stalls)
		one("longest while nothing moves, ms", figure(f.Usual))
		add("locks to fence, ms", f.Fences)
		add("move, s", f.Seconds)
		one("  until the rows are copied, s", figure(f.Copied))
		add("bare copy, s", f.Bare)
		add("move to bare copy", f.Ratios)
		one("cutovers tried again", cli.Thousands(f.Tried))
		addCounts(f.Counts, one)
		one("other shards, failed calls", cli.Thousands(f.OtherFailed))
		one("other shards, usual p99.9, ms", figure(f.OtherUsual))
		one("other shards, p99.9 in bare copies, ms", figure(f.OtherBare))
		one("other shards, p99.9 during moves, ms", figure(f.OtherDuring))
		one("other shards, during to usual", fmt.Sprintf("%.2f", f.OtherRatio))
		a.Table(rows)
		sayErrors(a, f.Errors)
	}
	if d := report.Drain; d != nil {
		if len(report.Parts) > 0 {
			a.Say("")
		}
		rows := [][]string{{"PART", "WHAT", ">ONCE"}}
		one := func(what, value string) { rows = append(rows, []string{"drain", what, value}) }
		one("shards", cli.Thousands(d.Shards))
		one("all of them, s", figure(d.Seconds))
		one("longest stall of a client, ms", figure(d.Stall))
		one("longest while nothing moves, ms", figure(d.Usual))
		addCounts(d.Counts, one)
		a.Table(rows)
		sayErrors(a, d.Errors)
	}
	text := fmt.Sprintf("%s in all, %s and as many readers", cli.Count(report.Rows, "row"), cli.Count(report.Callers, "writer"))
	if len(report.Parts) > 0 {
		last := report.Parts[len(report.Parts)-1]
		text += fmt.Sprintf("; %s of each part, %d of %s; %d MB a second at the rate; a row is held for %g s", cli.Count(report.Parts[0].Moves, "move"), last.Moves, last.Part, report.Rate/1e6, report.Hold)
	}
	a.Say("%s.", text)
}

func addCounts(c moves.Counts, one func(what, value string)) {
	one("calls", cli.Thousands(c.Calls))
	one("  failed", cli.Thousands(c.Failed))
	one("rows written", cli.Thousands(c.Written))
	one("  lost", cli.Thousands(c.Lost))
	one("  doubled", cli.Thousands(c.Doubled))
	one("IDs not above the one before", cli.Thousands(c.Falling))
}

func sayErrors(a *cli.App, errors []string) {
	for _, text := range errors {
		a.Say("an error: %s", cli.Clean(text))
	}
}
