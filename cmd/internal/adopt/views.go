package adopt

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

// viewsResult is the JSON output of kiloshard adopt views.
type viewsResult struct {
	views.Report
	Tables       int               `json:"table_count"` // that are sharded
	Failed       []cli.FailedShard `json:"failed"`
	NotAttempted shards.Set        `json:"not_attempted"`
	Seconds      float64           `json:"seconds"`
}

func viewsCommand(a *cli.App) *cobra.Command {
	var (
		plan     string
		sample   float64
		parallel int
	)
	cmd := &cobra.Command{
		Use:   "views",
		Short: "Makes each shard a schema of views over the old tables",
		Long: `Gate 1: makes each shard of the map a schema of updatable views over the old tables, as adopt.yaml says, so that
services can go to the router one by one. No row moves, and code that names the old tables goes on. All shards must be on
one host, the old database, and kiloshard create must have made them.

It first looks at the database again: exit code 2 while a table is undecided. Each shard is one transaction. A
second run changes nothing; after an interrupt it finishes the shards under way, and another run continues. After a
change of adopt.yaml, or of the old tables, it makes the views again. kiloshard adopt back takes all of it away.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case sample <= 0 || sample > 100:
				return cli.Usagef("--sample %g: expected more than 0, 100 at most", sample)
			case parallel < 1:
				return cli.Usagef("--parallel %d: expected 1 or more", parallel)
			}
			text, err := os.ReadFile(plan)
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Usagef("there is no %s: expected the file of decisions, which kiloshard adopt plan writes; or --plan FILE", plan)
			}
			if err != nil {
				return cli.Usage(err)
			}
			file, err := adopt.ParseFile(plan, text)
			if err != nil {
				return err
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			a.Audit(cmd.Context(), m.Hosts(), nil)
			start := time.Now()
			report, err := views.Make(cmd.Context(), views.Config{
				Map: m, File: file, Text: string(text), Sample: sample, Counting: counting(a), PerHost: parallel, Progress: a.Progress("adopt views"),
			})
			if undecided := (*views.UndecidedError)(nil); errors.As(err, &undecided) {
				return cli.Usage(err)
			}
			if report.Made.Len()+report.Kept.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(printViews(a, report, err, time.Since(start)), err)
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "adopt.yaml", "the file of decisions")
	cmd.Flags().Float64Var(&sample, "sample", 100, "per cent of the pages of each table whose rows are counted")
	cmd.Flags().IntVar(&parallel, "parallel", cli.DefaultParallel, "shards at a time")
	return cmd
}

func printViews(a *cli.App, report views.Report, err error, took time.Duration) error {
	result := viewsResult{Report: report, Failed: []cli.FailedShard{}, Seconds: took.Seconds()}
	for _, t := range report.Plan.Tables {
		if t.Is.Sharded() {
			result.Tables++
		}
	}
	partial := (*shards.PartialError)(nil)
	if errors.As(err, &partial) {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
	}
	return a.Print(result, func() {
		a.Say("%s of views on %s made in %s, %s as they were, %s", cli.Count(report.Made.Len(), "shard"), cli.Count(result.Tables, "table"),
			took.Round(time.Millisecond), cli.Thousands(report.Kept.Len()), cli.Left(partial))
	})
}
