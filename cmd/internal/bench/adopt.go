package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench/adopt"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localpg"
)

func adoptCommand(a *cli.App) *cobra.Command {
	cfg := adopt.Config{Progress: progress(a)}
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "What clients notice while one database becomes shards",
		Long: `Adopts the database of a photo service under clients of its old and its new code: 15 tables, 2 of them reference
tables and 1 left, with a chain of six foreign keys below the albums of a user. The old code writes until the old tables
are closed, and reads until gate 3. For each gate: how long it takes beside pg_dump | psql of the same database under
the same clients, the longest and the median statement of a client, and the disk. --end back goes back from gate 2
instead of finishing.

Statements on a view, and on rows that are mirrored to or from the old tables, take turns with the same statements on
the copy that psql made.

The command fails if a row is lost, doubled, changed, or in a wrong shard, or if a statement of a client fails. It needs
pg_dump and psql on the PATH.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkMinimums(
				minimum{"shards", cfg.Shards, 2}, minimum{"rows", cfg.Rows, adopt.LeastRows(cfg.Shards)}, minimum{"clients", cfg.Clients, 1},
				minimum{"rounds", cfg.Rounds, 1}, minimum{"calls", cfg.Calls, 1},
			); err != nil {
				return err
			}
			if cfg.Clients > adopt.MostClients {
				return cli.Usagef("--clients %d: expected %d at most", cfg.Clients, adopt.MostClients)
			}
			if cfg.End != adopt.EndFinish && cfg.End != adopt.EndBack {
				return cli.Usagef("--end %s: expected finish or back", cfg.End)
			}
			return benchAdopt(cmd.Context(), a, cfg)
		},
	}
	cmd.Flags().IntVar(&cfg.Rows, "rows", 5_000_000, "of all old tables")
	cmd.Flags().IntVar(&cfg.Shards, "shards", 64, "that the database becomes")
	cmd.Flags().IntVar(&cfg.Clients, "clients", 2, "how many are of the old code, and as many of the new")
	cmd.Flags().IntVar(&cfg.Rounds, "rounds", 5, "in which the sides of a statement take their turns")
	cmd.Flags().IntVar(&cfg.Calls, "calls", 100, "of a statement in a turn, fewer of slow ones")
	cmd.Flags().StringVar(&cfg.End, "end", adopt.EndFinish, "the last gate: finish or back")
	return cmd
}

func benchAdopt(ctx context.Context, a *cli.App, cfg adopt.Config) error {
	servers := throwaway.LocalConfig()
	servers.Settings = map[string]string{"max_wal_size": "4GB"}
	return throwaway.WithServersOf(ctx, a, 1, servers, func(servers []*localpg.Server) error {
		cfg.NewHosts = throwaway.NewHosts(servers)
		report, err := adopt.Run(ctx, cfg)
		if report == nil {
			return err
		}
		return errors.Join(a.Print(report, func() { printAdoption(a, report) }), err)
	})
}

func printAdoption(a *cli.App, r *adopt.Report) {
	rows := [][]string{{"STEP", ">SECONDS", ">X DUMP", ">LONGEST MS", "WHICH", ">MEDIAN MS", ">STATEMENTS", ">PEAK MB", ">X OLD TABLES", ">WAL MB"}}
	for _, s := range r.Steps {
		ratio := ""
		if s.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", s.Ratio)
		}
		rows = append(rows, []string{
			s.Name, figure(s.Seconds), ratio, figure(s.Longest), s.Which, fmt.Sprintf("%.2f", s.Median), cli.Thousands(s.Calls),
			megabytes(s.Peak), fmt.Sprintf("%.2f", s.PeakTo), megabytes(s.WAL),
		})
	}
	a.Table(rows)
	a.Say("")
	rows = [][]string{{"ROW BY WAY OF", "TABLE", "STATEMENT", ">US", ">PLAIN US", ">RATIO", ">US MORE"}}
	for _, s := range r.Statements {
		rows = append(rows, []string{
			s.Stage, s.Table, s.What, fmt.Sprintf("%.0f", s.Ours), fmt.Sprintf("%.0f", s.Plain), fmt.Sprintf("%.2f", s.Ratio), fmt.Sprintf("%.0f", s.More),
		})
	}
	a.Table(rows)
	a.Say("")
	a.Table([][]string{
		{">ROWS WRITTEN", ">COMPARED", ">LOST", ">DOUBLED", ">IN A WRONG SHARD", ">CHANGED", ">FAILED STATEMENTS", ">REFUSED, OLD CODE"},
		{
			cli.Thousands(r.Written), cli.Thousands(r.Compared), cli.Thousands(r.Lost), cli.Thousands(r.Doubled), cli.Thousands(r.Misplaced),
			cli.Thousands(r.Changed), cli.Thousands(r.Failed), cli.Thousands(r.Refused),
		},
	})
	sayErrors(a, r.Errors)
	a.Say("%s in old tables of %s MB, %s, %s of the old code and as many of the new. Statements are medians of %d rounds.",
		cli.Count(r.Rows, "row"), megabytes(r.OldBytes), cli.Count(r.Shards, "shard"), cli.Count(r.Clients, "client"), r.Rounds)
	a.Say("PostgreSQL %s.", r.Version)
}

// megabytes returns a size in MB, of 1,000,000 bytes.
func megabytes(bytes int64) string { return cli.Thousands(int((bytes + 500_000) / 1e6)) }
