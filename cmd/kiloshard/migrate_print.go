package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// runResult is what kiloshard migrate up, down and redo print as JSON.
type runResult struct {
	Run          string        `json:"run"` // its name in the ledger
	Target       int32         `json:"target"`
	Done         shards.Set    `json:"done"`
	UpToDate     shards.Set    `json:"up_to_date"`
	Steps        []step        `json:"steps"`
	Failed       []failedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Changed      []changedFile `json:"changed"`
	Seconds      float64       `json:"seconds"`
}

// changedFile is a file that shards have in another form than the directory's.
type changedFile struct {
	Version int32      `json:"version"`
	File    string     `json:"file"`
	Shards  shards.Set `json:"shards"`
}

func changedFiles(changed []migrate.ChangedFile) []changedFile {
	files := []changedFile{}
	for _, c := range changed {
		files = append(files, changedFile(c))
	}
	return files
}

// warnOfChanges says which files were changed after shards had run them.
func (a *app) warnOfChanges(changed []migrate.ChangedFile) {
	for _, c := range changed {
		fmt.Fprintf(a.stderr, "warning: %s (version %d) was changed, or replaced, after %s had run it (%s): they keep what they have\n",
			c.File, c.Version, count(c.Shards.Len(), "shard"), c.Shards)
	}
}

type step struct {
	From   int32      `json:"from"`
	To     int32      `json:"to"`
	Shards shards.Set `json:"shards"`
}

// printRun prints what a run did, and returns the error that goes with it.
func (a *app) printRun(report migrate.Report, partial *shards.PartialError) error {
	result := runResult{
		Run: report.Run, Target: report.Target, Changed: changedFiles(report.Changed), Done: report.Done, UpToDate: report.UpToDate,
		Steps: []step{}, Failed: []failedShard{}, Seconds: report.Elapsed.Seconds(),
	}
	for _, s := range report.Steps {
		result.Steps = append(result.Steps, step(s))
	}
	if partial != nil {
		result.Failed, result.NotAttempted = failures(partial), partial.NotAttempted
	}
	err := a.print(result, func() {
		for _, s := range report.Steps {
			a.say("%s %d→%d", count(s.Shards.Len(), "shard"), s.From, s.To)
		}
		a.say("%s at version %d now, %s before, %d failed, %d not attempted, in %s",
			count(report.Done.Len(), "shard"), report.Target, thousands(report.UpToDate.Len()), len(result.Failed),
			result.NotAttempted.Len(), report.Elapsed.Round(time.Millisecond))
	})
	a.warnOfChanges(report.Changed)
	if partial == nil {
		return err
	}
	for _, line := range groupFailures(partial) {
		fmt.Fprintln(a.stderr, line)
	}
	if len(report.Steps) > 0 {
		return errors.Join(err, partlyError{partial})
	}
	return errors.Join(err, partial)
}

// groupFailures returns a line for each cause: the shards that failed by it.
func groupFailures(partial *shards.PartialError) []string {
	byCause := map[string][]shards.Number{}
	var causes []string
	for _, f := range partial.Failed {
		cause := f.Err.Error()
		if byCause[cause] == nil {
			causes = append(causes, cause)
		}
		byCause[cause] = append(byCause[cause], f.Shard)
	}
	lines := make([]string, len(causes))
	for i, cause := range causes {
		set := shards.SetOf(byCause[cause]...)
		lines[i] = fmt.Sprintf("failed: %s (%s): %s", count(set.Len(), "shard"), set, cause)
	}
	return lines
}
