package adopt

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// planResult is the JSON output of kiloshard adopt plan.
type planResult struct {
	*adopt.Plan
	File       string        `json:"file"`
	Written    bool          `json:"written"`
	Undecided  []tables.Name `json:"undecided"`
	Statements string        `json:"statements"` // whether pg_stat_statements was read, to find keys that change
}

// reportInterval is how often a long count says where it is.
const reportInterval = 5 * time.Second

func planCommand(a *cli.App) *cobra.Command {
	var (
		from    database
		sample  float64
		rewrite bool
	)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Says what each table becomes, and what stands in the way",
		Long: `Reads the structure of a database, counts its rows, and says of each table whether it is keyed, chained,
reference, left or undecided. It writes adopt.yaml, to edit, and prints a report, also as HTML with --report. It
writes nothing to the database: all that it reads is in one transaction that is read only, and that sees one state.

An existing adopt.yaml is read: its decisions count, and it stays as it is, unless --rewrite is given. Exit code 2
while a table is undecided.

Rows are counted by reading each table once, which takes as long as that takes. Until the end, VACUUM keeps the rows
that were deleted after the beginning; --sample 1 reads one page of a hundred. A replica will do.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sample <= 0 || sample > 100 {
				return cli.Usagef("--sample %g: expected more than 0, 100 at most", sample)
			}
			cfg, err := from.config(a)
			if err != nil {
				return err
			}
			if _, err := os.Stat(from.file + ".old"); rewrite && cfg.File != nil && err == nil {
				return cli.Usagef("%s.old exists: expected no such file, since --rewrite keeps the old one there", from.file)
			}
			cfg.Sample = sample
			cfg.Progress = counting(a)
			result := planResult{File: from.file, Undecided: []tables.Name{}}
			var seen seenStatements
			plan, err := adopt.Look(cmd.Context(), cfg, func(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) error {
				if err := addProblems(ctx, tx, plan, cfg.File); err != nil {
					return err
				}
				return seen.read(ctx, tx, plan)
			})
			if err == nil {
				result.Statements, err = seen.keyChanges(cmd.Context(), plan)
			}
			if err != nil {
				return err
			}
			result.Plan = plan
			result.Undecided = append(result.Undecided, plan.Undecided()...)
			if cfg.File == nil || rewrite {
				if err := writePlan(from.file, plan, cfg.File != nil); err != nil {
					return err
				}
				result.Written = true
			}
			if err := writeReport(from.report, plan.Page()); err != nil {
				return err
			}
			if err := a.Print(result, func() { sayPlan(a, result) }); err != nil {
				return err
			}
			if n := len(result.Undecided); n > 0 {
				return cli.Usagef("%s undecided: edit %s, then run this again", are(n), from.file)
			}
			return nil
		},
	}
	from.flags(cmd, "write the report to an HTML file, too")
	cmd.Flags().Float64Var(&sample, "sample", 100, "per cent of the pages of each table whose rows are counted")
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "write an existing file again, with its decisions and without its comments; the old one gets the ending .old")
	return cmd
}

// addProblems adds what keeps rows of sharded tables from moving to the findings of the plan.
func addProblems(ctx context.Context, tx pgx.Tx, plan *adopt.Plan, file *adopt.File) error {
	set, err := structure.Read(ctx, tx, plan, file)
	if err != nil {
		return err
	}
	var found []adopt.Finding
	for _, p := range set.Problems {
		f := adopt.Finding{Kind: adopt.CannotMove, Text: p.Text}
		if p.Table != (tables.Name{}) {
			f.Table = p.Table.String()
		}
		found = append(found, f)
	}
	plan.Findings = append(found, plan.Findings...)
	return nil
}

func are(n int) string {
	if n == 1 {
		return "1 table is"
	}
	return cli.Count(n, "table") + " are"
}

// counting says on standard error where a count is, from time to time.
func counting(a *cli.App) func(table string, of, total int) {
	last := time.Now()
	return func(table string, of, total int) {
		if time.Since(last) >= reportInterval {
			last = time.Now()
			a.Warn("counting %s, %d of %d", table, of, total)
		}
	}
}

// writePlan writes the file. An existing one is kept under another name.
func writePlan(path string, plan *adopt.Plan, exists bool) error {
	if exists {
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(plan.Write())
	return errors.Join(err, file.Close())
}

func sayPlan(a *cli.App, result planResult) {
	say(a, result.Page())
	a.Say("\nKeys that change: %s.", result.Statements)
	if result.Written {
		a.Say("%s is written.", result.File)
	} else {
		a.Say("%s is as it was; its decisions count.", result.File)
	}
	if len(result.New) > 0 {
		a.Say("The database has tables that %s does not have, --rewrite adds them: %s", result.File, names(result.New))
	}
	if len(result.Missing) > 0 {
		a.Say("%s has tables that the database does not have, --rewrite leaves them out: %s", result.File, names(result.Missing))
	}
}

func names(all []tables.Name) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, ", ")
}
