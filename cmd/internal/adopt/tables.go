package adopt

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// tablesResult is the JSON output of kiloshard adopt tables.
type tablesResult struct {
	rows.Result
	Migration string  `json:"migration,omitempty"` // the file with the structure of shards
	Seconds   float64 `json:"seconds"`
}

func tablesCommand(a *cli.App) *cobra.Command {
	var (
		narrowed             string
		quiet, lockTimeout   time.Duration
		parallel, rowsAtOnce int
	)
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "Moves the rows of shards into tables of their own",
		Long: `Gate 2: moves the rows of shards from the old tables into tables of the shards, in the old database, while clients
write. First the old tables are closed: a write without a shard's path is an error from then on. Exit code 2, and nothing is
closed, if anybody wrote so within --quiet-for, or if another program has changed the structure.

Rows are copied and compared while triggers mirror what clients write. Then a shard's tables take the place of its
views; a try of that waits for locks for --lock-timeout at most, and so do clients behind it. What is written afterwards is
mirrored to the old tables, for kiloshard adopt back, until kiloshard adopt finish.

It writes the structure of the shards as the first migration, and records it as applied. After an error or an interrupt
(exit code 3 if some shards have tables), run it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case parallel < 1:
				return cli.Usagef("--parallel %d: expected 1 or more", parallel)
			case rowsAtOnce < 1:
				return cli.Usagef("--rows %d: expected 1 or more", rowsAtOnce)
			case quiet < 0 || lockTimeout <= 0:
				return cli.Usagef("--quiet-for %s, --lock-timeout %s: expected 0 or more, and more than 0", quiet, lockTimeout)
			}
			loaded, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			set, err := cli.ParseShards(m, narrowed)
			if err != nil {
				return err
			}
			a.Audit(cmd.Context(), m.Hosts(), nil)
			start := time.Now()
			result := tablesResult{}
			result.Result, err = rows.Tables(cmd.Context(), rows.Config{
				Map: m, Shards: set, QuietFor: quiet, LockTimeout: lockTimeout, Parallel: parallel, Batch: rowsAtOnce, Report: reporting(a),
			})
			if err == nil {
				result.Migration, err = recordStructure(cmd.Context(), a, loaded, m, result.Tables)
			}
			result.Seconds = time.Since(start).Seconds()
			if err != nil && result.Tables.Len() == 0 {
				return refused(err)
			}
			printed := a.Print(result, func() { sayTables(a, result, time.Since(start)) })
			if err != nil && refused(err) == err { //nolint:errorlint // whether it was wrapped here
				err = cli.Partly(err)
			}
			return errors.Join(printed, refused(err))
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	cmd.Flags().DurationVar(&quiet, "quiet-for", time.Hour, "how long nobody may have written without a shard's path; 0 to close the old tables at once")
	cmd.Flags().DurationVar(&lockTimeout, "lock-timeout", time.Second, "how long a try of a cutover waits for locks, and clients behind it")
	cmd.Flags().IntVar(&parallel, "parallel", cli.DefaultParallel, "tables, or shards, at a time")
	cmd.Flags().IntVar(&rowsAtOnce, "rows", 2000, "rows that are copied together")
	return cmd
}

// refused makes an error of a check one of usage: nothing was done.
func refused(err error) error {
	check := (*rows.CheckError)(nil)
	if errors.As(err, &check) || errors.Is(err, ledger.ErrNone) {
		return cli.Usage(err)
	}
	return err
}

func sayTables(a *cli.App, result tablesResult, took time.Duration) {
	a.Say("Gate %s after %s: %s with tables of their own (%s), %s without.", result.Gate, took.Round(time.Millisecond),
		cli.Count(result.Tables.Len(), "shard"), a.ShortSet(result.Tables), cli.Thousands(result.Rest.Len()))
	if result.Migration != "" {
		a.Say("%s has their structure, and is recorded as applied.", result.Migration)
	}
}

// reporting says on standard error what happens: at once what happens to shards, and from time to time how many rows are copied.
func reporting(a *cli.App) func(rows.Event) {
	var copied int64
	last := time.Now()
	return func(e rows.Event) {
		of := ""
		if e.Shards.Len() > 0 {
			of = " shards " + a.ShortSet(e.Shards)
		}
		switch e.Kind {
		case rows.Copied:
			copied += e.Rows
			if time.Since(last) >= reportInterval {
				last = time.Now()
				a.Warn("copying%s: %s rows so far, table %s", of, cli.Thousands(int(copied)), e.Table)
			}
		case rows.Made, rows.Validated, rows.Compared:
		case rows.Cutover, rows.Reverted, rows.Copying:
			a.Warn("%s%s", e.Kind, of)
		default:
			a.Warn("%s", e.Text)
		}
	}
}

// backToViews takes an adoption that is beyond gate 1 back to it, with all rows in the old tables.
func backToViews(ctx context.Context, a *cli.App, m *shards.Map, parallel int) error {
	_, err := rows.Back(ctx, rows.Config{Map: m, Parallel: parallel, Report: reporting(a)})
	if errors.Is(err, ledger.ErrNone) {
		return err
	}
	return refused(err)
}
