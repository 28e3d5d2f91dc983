package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/lint"
	"github.com/kiloshard/kiloshard/shards"
)

// planResult is the JSON output of kiloshard migrate plan.
type planResult struct {
	Down     bool                  `json:"down"` // what migrate down would do, and not up
	Target   int32                 `json:"target"`
	UpToDate shards.Set            `json:"up_to_date"`
	Groups   []planGroup           `json:"groups"`
	Files    []planFile            `json:"files"`
	Changed  []migrate.ChangedFile `json:"changed"`
	Sample   *migrate.SampleShard  `json:"sample,omitempty"` // whose SQL the files have
	Problems []string              `json:"problems"`         // why migrate up would refuse, beside failed shards
	Failed   []cli.FailedShard     `json:"failed"`
}

type planGroup struct {
	From       int32      `json:"from"`
	To         int32      `json:"to"`
	ShardCount int        `json:"shard_count"`
	Shards     shards.Set `json:"shards"`
	Hosts      []planHost `json:"hosts"`
	Files      []string   `json:"files"`
}

type planHost struct {
	Host       string     `json:"host"`
	ShardCount int        `json:"shard_count"`
	Shards     shards.Set `json:"shards"`
}

type planFile struct {
	Version    int32         `json:"version"`
	File       string        `json:"file"`
	ShardCount int           `json:"shard_count"`
	Shared     bool          `json:"shared"`   // it runs once a host, and the shards only pass it
	Rendered   bool          `json:"rendered"` // lines are those of the rendered text
	Warnings   []planWarning `json:"warnings"`
	Unread     string        `json:"unread,omitempty"` // why there are no warnings
	SQL        string        `json:"sql"`
}

type planWarning struct {
	lint.Warning // its line is the file's

	ofFile bool // the line is not that of the rendered text; 0 when unknown
}

func planCommand(a *cli.App) *cobra.Command {
	var narrowed string
	var to string
	var withSQL, down bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Prints what migrate up would do, and warns of risks",
		Long: `Prints what migrate up would do: which shards go from which version to which, by which files. It warns of each
statement that locks a table for long, rewrites it, breaks services that still run, cannot work in every
shard, or keeps a shard from moving. It runs nothing. With --down --to N it prints what migrate down would do. Exit code 1 when the run would
be refused; warnings do not change it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if down && to == "" {
				return cli.Usagef("--down: expected --to with it, the version to go back to")
			}
			cfg, err := readConfig(cmd.Context(), a, narrowed)
			if err != nil {
				return err
			}
			cfg.Down = down
			if cfg.To, err = target(cmd.Context(), cfg, to); err != nil {
				return err
			}
			return plan(cmd.Context(), a, cfg, withSQL)
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	cmd.Flags().StringVar(&to, "to", "", upUsage)
	cmd.Flags().BoolVar(&down, "down", false, "what migrate down would do")
	cmd.Flags().BoolVar(&withSQL, "sql", false, "print the files' SQL too, as one shard gets it")
	return cmd
}

// plan prints what a run with the config would do.
func plan(ctx context.Context, a *cli.App, cfg migrate.Config, withSQL bool) error {
	report, err := migrate.Plan(ctx, cfg)
	var partial *shards.PartialError
	if err != nil && !errors.As(err, &partial) {
		return cli.Usage(err) // about the files or the config: no host was asked
	}
	warnOfChanges(a, report.Changed)
	result := newPlanResult(cfg.Map, report, partial)
	result.Down = cfg.Down
	return printPlan(a, cfg.Map, result, partial, withSQL)
}

func newPlanResult(m *shards.Map, report migrate.PlanReport, partial *shards.PartialError) planResult {
	result := planResult{
		Target: report.Target, UpToDate: report.UpToDate, Groups: []planGroup{}, Files: []planFile{}, Changed: listOf(report.Changed),
		Problems: []string{}, Failed: []cli.FailedShard{}, Sample: report.Sample,
	}
	for _, g := range report.Groups {
		group := planGroup{From: g.From, To: g.To, ShardCount: g.Shards.Len(), Shards: g.Shards, Files: g.Files}
		for _, h := range g.Hosts {
			group.Hosts = append(group.Hosts, planHost{Host: h.Host, ShardCount: h.Shards.Len(), Shards: h.Shards})
		}
		result.Groups = append(result.Groups, group)
	}
	known := &lint.Known{}
	for _, f := range report.Earlier {
		if lower := strings.ToLower(f.SQL); strings.Contains(lower, "next_id") || strings.Contains(lower, "function") {
			_, _ = lint.Check(f.SQL, lintOptions(m, f, report.Sample.Schema, known)) // for what it makes alone
		}
	}
	if len(report.Earlier) > 0 {
		known.HaveRun()
	}
	for i, f := range report.Files {
		if i > 0 && f.Shards != report.Files[i-1].Shards { // more shards than those to which the files before go
			known.HaveRun()
		}
		file := newPlanFile(m, f, report.Sample.Schema, known)
		for _, risk := range report.Templates {
			if risk.File == f.Name {
				file.Warnings = append(file.Warnings, templateWarning(risk))
			}
		}
		result.Files = append(result.Files, file)
	}
	if partial != nil {
		result.Failed = cli.Failures(partial)
		for _, cause := range partial.Causes {
			if !errors.Is(cause, migrate.ErrNothingRun) {
				result.Problems = append(result.Problems, cause.Error())
			}
		}
	}
	return result
}

// lintOptions returns what the check of a file needs to know. A text that is the same for all shards may name none of their
// schemas.
func lintOptions(m *shards.Map, f migrate.PlanFile, schema string, known *lint.Known) lint.Options {
	opts := lint.Options{Known: known, IsShard: func(schema string) bool { _, ok := m.NumberOf(schema); return ok }, Outside: f.MarkAbove}
	for _, e := range m.Extensions() {
		opts.Extensions = append(opts.Extensions, e.Name)
	}
	if f.Rendered {
		opts.Schema = schema
	}
	if f.Shared {
		opts.Shared = m.SharedSchemas()
	}
	return opts
}

// newPlanFile checks a file's SQL for risks.
func newPlanFile(m *shards.Map, f migrate.PlanFile, schema string, known *lint.Known) planFile {
	file := planFile{Version: f.Version, File: f.Name, ShardCount: f.Shards, Shared: f.Shared, Rendered: f.Rendered, Warnings: []planWarning{}, SQL: f.SQL}
	warnings, err := lint.Check(f.SQL, lintOptions(m, f, schema, known))
	var unread *lint.ParseError
	switch {
	case errors.As(err, &unread) && unread.Line > 0:
		file.Unread = fmt.Sprintf("line %d: %s", unread.Line+f.Line-1, unread.Message)
	case err != nil:
		file.Unread = err.Error()
	}
	for _, w := range warnings {
		w.Line += f.Line - 1
		file.Warnings = append(file.Warnings, planWarning{Warning: w})
	}
	if f.MarkAbove {
		file.Warnings = append(file.Warnings, planWarning{Warning: lint.Warning{
			Rule: "disable-tx-down", Kind: lint.Fails, Line: 1, Statement: "---- tern: disable-tx ----",
			Effect:  "kiloshard runs the way down outside a transaction too; tern's own program would run it in one",
			Instead: "repeat the line below the separator",
		}})
	}
	return file
}

// templateWarning says what a template does to the shards.
func templateWarning(risk migrate.TemplateRisk) planWarning {
	w := planWarning{lint.Warning{Rule: string(risk.Kind), Kind: lint.Differs, Line: risk.Line, Statement: risk.Text}, true}
	switch risk.Kind {
	case migrate.TemplateVaries:
		w.Effect = "the file is rendered for each shard, and gives another text each time: no two shards run the same"
		w.Instead = "a function of SQL where rows are to differ, such as now() or gen_random_uuid(), or a fixed value"
	case migrate.TemplateByShard:
		w.Effect = "the shards' texts differ in more than their names and numbers: migrate drift reports what differs in their structure"
		w.Instead = "the same text for all shards; kiloshard exec --shards changes some"
	case migrate.TemplateConstant:
		w.Effect = "a constant in double braces is rendered without them: as an array of SQL it is another value"
		w.Instead = `{{"{{"}} for two braces of SQL`
	}
	return w
}

// printPlan prints a plan, and returns the error that goes with it.
func printPlan(a *cli.App, m *shards.Map, result planResult, partial *shards.PartialError, withSQL bool) error {
	err := a.Print(result, func() {
		if len(result.Groups) > 0 {
			a.Table(planRows(result))
			a.Say("")
		}
		for _, f := range result.Files {
			sayPlanFile(a, f, result.Sample, withSQL)
		}
		toDo := 0
		for _, g := range result.Groups {
			toDo += g.ShardCount
		}
		a.Say("%s to go to version %d, %s there; %s", cli.Count(toDo, "shard"), result.Target, cli.Thousands(result.UpToDate.Len()), cli.Count(warningsIn(result), "warning"))
	})
	if partial == nil {
		return err
	}
	a.PrintFailures(m, partial)
	for _, problem := range cli.GroupHosts(result.Problems) {
		fmt.Fprintln(a.Stderr, "problem:", problem)
	}
	if result.Down {
		return errors.Join(err, errors.New("migrate down would refuse to run"))
	}
	return errors.Join(err, errors.New("migrate up would refuse to run"))
}

func planRows(result planResult) [][]string {
	rows := [][]string{{">SHARDS", ">FROM", ">TO", ">FILES", "HOSTS"}}
	for _, g := range result.Groups {
		hosts := make([]string, len(g.Hosts))
		for i, h := range g.Hosts {
			hosts[i] = h.Host + " " + cli.Thousands(h.ShardCount)
		}
		rows = append(rows, []string{cli.Thousands(g.ShardCount), fmt.Sprint(g.From), fmt.Sprint(g.To), fmt.Sprint(len(g.Files)), strings.Join(hosts, ", ")})
	}
	return rows
}

func sayPlanFile(a *cli.App, f planFile, sample *migrate.SampleShard, withSQL bool) {
	if f.Shared {
		a.Say("%s, once a host, before %s", f.File, cli.Count(f.ShardCount, "shard"))
	} else {
		a.Say("%s, on %s", f.File, cli.Count(f.ShardCount, "shard"))
	}
	of := ""
	if f.Rendered {
		of = " of its rendered text"
	}
	if f.Unread != "" {
		a.Say("  not checked, for it cannot be read%s: %s", of, f.Unread)
	}
	for _, w := range f.Warnings {
		where := fmt.Sprintf("line %d%s: ", w.Line, of)
		switch {
		case w.ofFile && w.Line == 0:
			where = ""
		case w.ofFile:
			where = fmt.Sprintf("line %d: ", w.Line)
		}
		a.Say("  %s%s (%s): %s", where, w.Rule, w.Kind, w.Statement)
		a.Say("    %s", w.Effect)
		a.Say("    instead: %s", w.Instead)
	}
	if withSQL {
		if !f.Shared {
			a.Say("  as shard %d (%s on %s) gets it:", sample.Shard, sample.Schema, sample.Host)
		}
		a.Say("    %s", strings.ReplaceAll(f.SQL, "\n", "\n    "))
	}
	a.Say("")
}

func warningsIn(result planResult) int {
	n := 0
	for _, f := range result.Files {
		n += len(f.Warnings)
	}
	return n
}
