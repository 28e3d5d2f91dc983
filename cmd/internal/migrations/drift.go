package migrations

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// driftResult is the JSON output of kiloshard migrate drift.
type driftResult struct {
	drift.Report
	Failed       []cli.FailedShard `json:"failed"`
	NotAttempted shards.Set        `json:"not_attempted"`
}

func driftCommand(a *cli.App) *cobra.Command {
	var narrowed string
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Compares the structure of all shards and names differences",
		Long: `Compares the structure of all shards at each version with each other: tables, columns, indexes, constraints,
sequences, views, functions, triggers, types, policies, comments; not rows, owners or privileges. It groups
the shards by structure and prints how each group differs from the largest one: "+" is only in the group,
"-" is missing from it. It changes nothing. Exit code 1 when shards differ.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			set, err := cli.ParseShards(m, narrowed)
			if err != nil {
				return err
			}
			report, err := drift.Look(cmd.Context(), drift.Config{Map: m, Shards: set})
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return err
			}
			if printErr := printDrift(a, report, partial); printErr != nil {
				return errors.Join(printErr, err)
			}
			if report.Drift() {
				if err != nil {
					fmt.Fprintln(a.Stderr, "kiloshard:", err.Error())
				}
				return cli.ErrSilent
			}
			return err
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	return cmd
}

func printDrift(a *cli.App, report drift.Report, partial *shards.PartialError) error {
	report.Groups = listOf(report.Groups)
	result := driftResult{Report: report, Failed: []cli.FailedShard{}}
	if partial != nil {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
	}
	total, odd := 0, 0
	rows := [][]string{{">VERSION", ">SHARDS", "FINGERPRINT", "WHERE"}}
	for i, g := range report.Groups {
		report.Groups[i].Differences = listOf(g.Differences)
		total += g.Shards.Len()
		if !g.Main {
			odd += g.Shards.Len()
		}
		rows = append(rows, []string{fmt.Sprint(g.Version), cli.Thousands(g.Shards.Len()), g.Fingerprint[:12], where(g)})
	}
	return a.Print(result, func() {
		if n := report.Moving.Len(); n > 0 {
			defer a.Say("%s being moved, and fenced: %s; see kiloshard move status", cli.Count(n, "shard"), report.Moving)
		}
		if total == 0 {
			a.Say("0 shards compared, %d not created", report.NotCreated.Len())
			return
		}
		a.Table(rows)
		for i, g := range report.Groups {
			if g.Main {
				continue
			}
			a.Say("")
			a.Say("%s at version %d (%s): shard %d differs from shard %d in", cli.Count(g.Shards.Len(), "shard"), g.Version, g.Shards, g.Example, MainOf(report, i).Example)
			for _, line := range g.Differences {
				a.Say("  %s", line)
			}
			if len(g.Differences) == 0 {
				a.Say("  what was not looked into, since too many groups differ")
			}
		}
		if odd > 0 {
			a.Say("")
		}
		a.Say("%s compared, %s", cli.Count(total, "shard"), differing(odd))
		if n := report.NotCreated.Len(); n > 0 {
			a.Say("%s not created: %s", cli.Count(n, "shard"), report.NotCreated)
		}
	})
}

func differing(odd int) string {
	switch odd {
	case 0:
		return "none differs from the others at its version"
	case 1:
		return "1 differs from the others at its version"
	}
	return cli.Thousands(odd) + " differ from the others at their version"
}

// MainOf returns the group that group i is compared with.
func MainOf(report drift.Report, i int) drift.Group {
	for !report.Groups[i].Main {
		i--
	}
	return report.Groups[i]
}

// where returns the hosts of a group's shards with the shards.
func where(g drift.Group) string {
	texts := make([]string, len(g.Hosts))
	for i, h := range g.Hosts {
		texts[i] = h.Host + " " + h.Shards.String()
	}
	return strings.Join(texts, "; ")
}
