package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/cmd/internal/progress"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// Work is what create, upgrade and grant print of their work on shards.
type Work struct {
	Failed       []FailedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Seconds      float64       `json:"seconds"`

	partial *shards.PartialError // nil if all is done
}

// WorkDone takes the failures out of the error of a run.
func WorkDone(err error, took time.Duration) Work {
	w := Work{Failed: []FailedShard{}, Seconds: took.Seconds()}
	if partial := (*shards.PartialError)(nil); errors.As(err, &partial) {
		w.Failed, w.NotAttempted, w.partial = Failures(partial), partial.NotAttempted, partial
	}
	return w
}

// Did returns "created in 1.2s", or "to be created" for a dry run.
func (w Work) Did(verb string, dryRun bool) string {
	if dryRun {
		return "to be " + verb
	}
	return verb + " in " + time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond).String()
}

// Rest is "0 failed, 0 not attempted".
func (w Work) Rest() string {
	return Left(w.partial)
}

// --parallel is the same for all commands that work on shards.
const (
	DefaultParallel = 4
	ParallelUsage   = "shards, or batches of shards, of each host at a time"
)

// CheckWork checks the flags of create, upgrade and grant.
func CheckWork(cfg provision.CreateConfig) error {
	switch {
	case cfg.PerHost < 1:
		return Usagef("--parallel %d: expected 1 or more", cfg.PerHost)
	case cfg.Batch < 1:
		return Usagef("--batch %d: expected 1 or more", cfg.Batch)
	case cfg.Wait < 0:
		return Usagef("--wait %s: expected 0 or more", cfg.Wait)
	}
	return nil
}

// WorkFlags are those of create, upgrade and grant.
func WorkFlags(cmd *cobra.Command, cfg *provision.CreateConfig) {
	cmd.Flags().BoolVar(&cfg.DryRun, "dry-run", false, "only say what there is to do")
	cmd.Flags().IntVar(&cfg.PerHost, "parallel", DefaultParallel, ParallelUsage)
	cmd.Flags().IntVar(&cfg.Batch, "batch", 64, "shards in a transaction")
	cmd.Flags().DurationVar(&cfg.Wait, "wait", time.Minute, "how long to wait for another create, upgrade or grant")
}

// Progress shows on standard error how work on shards goes on.
func (a *App) Progress(doing string) fanout.Progress {
	if a.Quiet {
		return nil
	}
	if file, ok := FileOf(a.Stderr); ok && term.IsTerminal(int(file.Fd())) {
		return progress.Bars(doing, file)
	}
	return progress.Lines(doing, a.Stderr)
}
