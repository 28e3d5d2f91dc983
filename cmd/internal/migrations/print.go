package migrations

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
)

// runResult is the JSON output of kiloshard migrate up, down and redo.
type runResult struct {
	Run          string                `json:"run"` // its name in the ledger
	Target       int32                 `json:"target"`
	Done         shards.Set            `json:"done"`
	UpToDate     shards.Set            `json:"up_to_date"`
	Steps        []migrate.Step        `json:"steps"`
	Failed       []cli.FailedShard     `json:"failed"`
	NotAttempted shards.Set            `json:"not_attempted"`
	Shared       []migrate.SharedFile  `json:"shared"` // files that ran once a host
	Changed      []migrate.ChangedFile `json:"changed"`
	BareNames    []migrate.BareName    `json:"bare_names"`            // what moves and restores do not find
	TriedAgain   int                   `json:"tried_again,omitempty"` // attempts after a lock that was not free, or a collision with others
	Donor        *snapshot.Donor       `json:"donor"`                 // that new shards were made like; null for none
	NoSnapshot   string                `json:"no_snapshot,omitempty"` // why all new shards ran the files, though there are many
	Seconds      float64               `json:"seconds"`
}

// listOf returns a list that JSON has as one, also if it is empty.
func listOf[T any](all []T) []T { return append([]T{}, all...) }

// warnOfChanges says which files were changed after shards had run them.
func warnOfChanges(a *cli.App, changed []migrate.ChangedFile) {
	for _, c := range changed {
		if !c.Replaced() {
			a.Warn("warning: %s (version %d) was changed after %s had run it (%s): they keep what they have. If that is as it should be: kiloshard migrate accept %d",
				c.File, c.Version, cli.Count(c.Shards.Len(), "shard"), c.Shards, c.Version)
		}
	}
}

// printRun prints the report of a run, and returns its error.
func printRun(a *cli.App, m *shards.Map, report migrate.Report, partial *shards.PartialError) error {
	result := runResult{
		Run: report.Run, Target: report.Target, Done: report.Done, UpToDate: report.UpToDate, Steps: listOf(report.Steps), Failed: []cli.FailedShard{},
		Shared: listOf(report.Shared), Changed: listOf(report.Changed), BareNames: listOf(report.BareNames), TriedAgain: report.TriedAgain,
		Donor: report.Donor, Seconds: report.Elapsed.Seconds(),
	}
	if report.NoSnapshot != nil {
		result.NoSnapshot = report.NoSnapshot.Error()
	}
	if partial != nil {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
	}
	err := a.Print(result, func() {
		for _, f := range report.Shared {
			a.Say("%s once on %s", f.File, strings.Join(f.Hosts, ", "))
		}
		for _, s := range report.Steps {
			a.Say("%s %d→%d", cli.Count(s.Shards.Len(), "shard"), s.From, s.To)
		}
		if text := NewShards(report); text != "" {
			a.Say("%s", text)
		}
		if errors.Is(partialOrNil(partial), migrate.ErrNothingRun) {
			return // the error says why; no host was asked for its versions
		}
		a.Say("%s at version %d now, %s before, %s, in %s",
			cli.Count(report.Done.Len(), "shard"), report.Target, cli.Thousands(report.UpToDate.Len()), cli.Left(partial), report.Elapsed.Round(time.Millisecond))
		if report.TriedAgain > 0 {
			a.Say("tried again: %d, after locks that were not free, or collisions with others", report.TriedAgain)
		}
	})
	warnOfChanges(a, report.Changed)
	for _, b := range report.BareNames {
		a.Warn("warning: %s calls %s, which names %s without its schema: a move and a restore do not find it, since they write rows with an empty search_path; expected SET search_path FROM CURRENT in the function",
			b.Caller, b.Function, b.Name)
	}
	if partial == nil {
		return err
	}
	a.PrintFailures(m, partial)
	if len(report.Steps) > 0 || len(report.Shared) > 0 {
		return errors.Join(err, cli.Partly(cli.Told(partial)))
	}
	return errors.Join(err, cli.Told(partial))
}

// NewShards says how new shards were made if there are many files; empty if there were no new shards.
func NewShards(report migrate.Report) string {
	switch {
	case report.Donor != nil:
		return fmt.Sprintf("new shards made like shard %d, which ran the files", report.Donor.Shard)
	case report.NoSnapshot != nil:
		return fmt.Sprintf("new shards ran all files, none was made like another: %v", report.NoSnapshot)
	}
	return ""
}

// partialOrNil returns the error, and nil for none.
func partialOrNil(partial *shards.PartialError) error {
	if partial == nil {
		return nil
	}
	return partial
}
