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
	cfg := moves.Config{Progress: progress(a)}
	var turn, hold float64
	var rate int64
	cmd := &cobra.Command{
		Use:   "move",
		Short: "What services notice while a shard moves",
		Long: `Moves a shard to another host and back while callers write to it and read from it as fast
as they can, and at a slower pace to other shards of both hosts. Before each move a bare
CREATE SUBSCRIPTION copies the same tables under the same load. Each round writes its own
rows, checks afterwards that they exist, and deletes them. wal_retrieve_retry_interval is
1 s: Postgres 15 starts at most one subscription within it, so the second would wait. The
hosts reuse old WAL files, as hosts do that have run for some time.

The parts, which --only selects, and the goal of each:

  table   a shard of one table: the longest stall of any client under 40 ms in the median
          move and 150 ms in the worst; no failed call, no row lost or doubled, IDs that
          rise; at most 1.3 times as long as the bare copy
  tables  the same rows in ten tables
  rate    one table again, copied at --rate: the p99.9 of other shards at most twice the
          usual, which needs a rate
  lock    the same while a transaction holds a row for 25 s: no client waits for longer
          than 600 ms, and the move ends soon after the transaction
  drain   the same rows in --shards shards of one host, which all move to two others: no
          failed call, no row lost or doubled`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, moves.Parts()); err != nil {
				return err
			}
			if err := checkMinimums(
				minimum{"rows", cfg.Rows, 1000}, minimum{"moves", cfg.Moves, 1}, minimum{"callers", cfg.Callers, 1},
				minimum{"rate", int(rate), 1}, minimum{"shards", cfg.Shards, 2},
			); err != nil {
				return err
			}
			if err := checkSeconds("turn", turn); err != nil {
				return err
			}
			if err := checkSeconds("hold", hold); err != nil {
				return err
			}
			cfg.Rate = rate * 1e6
			cfg.Turn, cfg.Hold = time.Duration(turn*float64(time.Second)), time.Duration(hold*float64(time.Second))
			return benchMove(cmd.Context(), a, cfg)
		},
	}
	onlyFlag(cmd, &cfg.Only, moves.Parts())
	cmd.Flags().IntVar(&cfg.Rows, "rows", 1_000_000, "of the shard")
	cmd.Flags().IntVar(&cfg.Moves, "moves", 10, "back and forth")
	cmd.Flags().IntVar(&cfg.Callers, "callers", 4, "how many write to the shard, and as many read")
	cmd.Flags().IntVar(&cfg.Shards, "shards", 100, "of the host that is drained, in the part drain")
	cmd.Flags().Float64Var(&turn, "turn", 2, "seconds of the load before each move")
	cmd.Flags().Int64Var(&rate, "rate", 10, "MB copied per second, in the part rate")
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
		return a.Print(report, func() { printMoves(a, report) })
	})
}

func printMoves(a *cli.App, report *moves.Report) {
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
	a.Say("%s in all, %s and as many readers.", cli.Count(report.Rows, "row"), cli.Count(report.Callers, "writer"))
	if n := len(report.Parts); n > 0 {
		last := report.Parts[n-1]
		a.Say("%s in each part, %d in %s. The rate is %d MB a second; the lock is held for %g s.",
			cli.Count(report.Parts[0].Moves, "move"), last.Moves, last.Part, report.Rate/1e6, report.Hold)
	}
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
