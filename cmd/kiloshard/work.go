package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/progress"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// work is what create, upgrade and grant print of their work on shards.
type work struct {
	Failed       []failedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Seconds      float64       `json:"seconds"`
}

// workDone takes the failures out of the error of a run.
func workDone(err error, took time.Duration) work {
	w := work{Failed: []failedShard{}, Seconds: took.Seconds()}
	if partial := (*shards.PartialError)(nil); errors.As(err, &partial) {
		w.Failed, w.NotAttempted = failures(partial), partial.NotAttempted
	}
	return w
}

// did is "created in 1.2s", or "to be created" of a dry run.
func (w work) did(verb string, dryRun bool) string {
	if dryRun {
		return "to be " + verb
	}
	return verb + " in " + time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond).String()
}

// rest is "0 failed, 0 not attempted".
func (w work) rest() string {
	return fmt.Sprintf("%d failed, %d not attempted", len(w.Failed), w.NotAttempted.Len())
}

// --parallel is the same for all commands that work on shards.
const (
	defaultParallel = 4
	parallelUsage   = "shards, or batches of shards, of each host at a time"
)

// checkWork checks the flags of create, upgrade and grant.
func checkWork(cfg provision.CreateConfig) error {
	switch {
	case cfg.PerHost < 1:
		return usagef("--parallel %d: expected 1 or more", cfg.PerHost)
	case cfg.Batch < 1:
		return usagef("--batch %d: expected 1 or more", cfg.Batch)
	case cfg.Wait < 0:
		return usagef("--wait %s: expected 0 or more", cfg.Wait)
	}
	return nil
}

// workFlags are those of create, upgrade and grant.
func workFlags(cmd *cobra.Command, cfg *provision.CreateConfig) {
	cmd.Flags().BoolVar(&cfg.DryRun, "dry-run", false, "only say what there is to do")
	cmd.Flags().IntVar(&cfg.PerHost, "parallel", defaultParallel, parallelUsage)
	cmd.Flags().IntVar(&cfg.Batch, "batch", 64, "shards in a transaction")
	cmd.Flags().DurationVar(&cfg.Wait, "wait", time.Minute, "how long to wait for another create, upgrade or grant")
}

// progress shows on standard error how work on shards goes on.
func (a *app) progress(doing string) fanout.Progress {
	if a.quiet {
		return nil
	}
	if file, ok := fileOf(a.stderr); ok && term.IsTerminal(int(file.Fd())) {
		return progress.Bars(doing, file)
	}
	return progress.Lines(doing, a.stderr)
}
