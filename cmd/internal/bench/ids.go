package bench

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/ids"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func idsCommand(a *cli.App) *cobra.Command {
	cfg := ids.Config{Progress: progress(a)}
	var plots string
	cmd := &cobra.Command{
		Use:   "ids",
		Short: "IDs in every way: cost, rate, WAL, duplicates, tables",
		Long: `Makes IDs in every way, taking turns: next_id() on one shard and on 16, next_ids() and
leases, the function that Instagram published, tickets, interleaved and central
sequences, a counter in a row, UUIDs, a bare nextval. All IDs are checked for
duplicates. Then it fills a table with each as its primary key.

--plot DIR also draws IDs per millisecond over the number of sessions, and rows per
second over the size of the table, as SVG and PNG.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			minimums := []minimum{{"rows", cfg.Rows, 0}}
			for _, n := range cfg.Sessions {
				minimums = append(minimums, minimum{"sessions", n, 1})
			}
			if err := checkMinimums(minimums...); err != nil {
				return err
			}
			if cfg.Duration <= 0 {
				return cli.Usagef("--duration %s: expected more than 0", cfg.Duration)
			}
			if cfg.Rows == 0 {
				cfg.Rows = -1
			}
			return throwaway.WithServers(cmd.Context(), a, 1, func(servers []*localpg.Server) error {
				for _, name := range []string{"main", "tickets_a", "tickets_b"} {
					dsn, err := servers[0].CreateDatabase(cmd.Context(), fmt.Sprintf("kiloshard_bench_%s_%d", name, os.Getpid()))
					if err != nil {
						return err
					}
					cfg.Hosts = append(cfg.Hosts, shards.Host{Name: name, DSN: dsn})
				}
				report, err := ids.Run(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				if err := plot(a, plots, report); err != nil {
					return err
				}
				return a.Print(report, func() { printIDs(a, report) })
			})
		},
	}
	cmd.Flags().IntSliceVar(&cfg.Sessions, "sessions", []int{1, 32}, "how many sessions make IDs at once")
	cmd.Flags().DurationVar(&cfg.Duration, "duration", 24*time.Second, "total time of making IDs")
	cmd.Flags().IntVar(&cfg.Rows, "rows", 1_000_000, "of each table that it fills; 0 for no tables")
	cmd.Flags().StringVar(&plots, "plot", "", "a directory for plots")
	return cmd
}

func printIDs(a *cli.App, report *ids.Report) {
	rows := [][]string{{">SESSIONS", "FUNCTION", ">US PER ID", ">IDS PER MS", ">OF CEILING", ">WAL B/ID", ">DUPLICATES", ">X PUBLISHED", ">X ONE SHARD"}}
	for _, f := range report.Rows {
		rows = append(rows, []string{
			strconv.Itoa(f.Sessions), f.Function, fmt.Sprintf("%.2f", f.Microseconds), fmt.Sprintf("%.0f", f.PerMs),
			fmt.Sprintf("%.0f %%", 100*f.OfCeiling), fmt.Sprintf("%.1f", f.WALBytes), cli.Thousands(f.Duplicates),
			fmt.Sprintf("%.2f", f.VsPublished), fmt.Sprintf("%.2f", f.VsOneShard),
		})
	}
	a.Table(rows)
	a.Say(`PostgreSQL %s. Rates are of all sessions together; the last two columns are their ratios to the published
function and to next_id on one shard. The ceiling is the format's: %d IDs a millisecond on one shard.`, report.Server, report.Ceiling)

	b := report.Burst
	a.Say("\nA burst of %s on an idle shard takes %.2f microseconds an ID with a statement for each ID, %.2f with one\nstatement for all, and %.2f with next_ids: %.3f and %.2f times as long.",
		cli.Count(b.IDs, "ID"), b.Singly, b.Calls, b.Many, b.VsSingly, b.VsCalls)
	a.Say("For each shard whose next_id() it has called, a session keeps %.1f KiB of functions, %.1f KiB with the sequence.",
		float64(report.Memory.Functions)/1024, float64(report.Memory.All)/1024)
	a.Say("A lease hands out %.1f million IDs a second on one core, %.1f million a hundred at a time.",
		report.Lease.NextPerSecond/1e6, report.Lease.NextIDsPerSecond/1e6)

	if len(report.Inserts) == 0 {
		return
	}
	a.Say("")
	rows = [][]string{{"KEY", ">ROWS", ">ROWS PER S", ">X BIGSERIAL'S TIME", ">INDEX MB", ">TABLE MB", ">WAL B/ROW"}}
	for _, f := range report.Inserts {
		rows = append(rows, []string{
			f.Key, cli.Thousands(f.Rows), cli.Thousands(int(f.PerSecond)), fmt.Sprintf("%.2f", f.VsBigserial),
			fmt.Sprintf("%.1f", float64(f.IndexBytes)/1e6), fmt.Sprintf("%.1f", float64(f.TableBytes)/1e6), fmt.Sprintf("%.0f", f.WALBytes),
		})
	}
	a.Table(rows)
}
