package cluster

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// work is what create, upgrade and grant print of their work on shards.
type work struct {
	Failed       []cli.FailedShard `json:"failed"`
	NotAttempted shards.Set        `json:"not_attempted"`
	Seconds      float64           `json:"seconds"`

	partial *shards.PartialError // nil if all is done
}

// workDone takes the failures out of the error of a run.
func workDone(err error, took time.Duration) work {
	w := work{Failed: []cli.FailedShard{}, Seconds: took.Seconds()}
	if partial := (*shards.PartialError)(nil); errors.As(err, &partial) {
		w.Failed, w.NotAttempted, w.partial = cli.Failures(partial), partial.NotAttempted, partial
	}
	return w
}

// did returns "created in 1.2s", or "to be created" for a dry run.
func (w work) did(verb string, dryRun bool) string {
	if dryRun {
		return "to be " + verb
	}
	return verb + " in " + time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond).String()
}

// rest is "0 failed, 0 not attempted".
func (w work) rest() string {
	return cli.Left(w.partial)
}

// checkWork checks the flags of create, upgrade and grant.
func checkWork(cfg provision.CreateConfig) error {
	switch {
	case cfg.PerHost < 1:
		return cli.Usagef("--parallel %d: expected 1 or more", cfg.PerHost)
	case cfg.Batch < 1:
		return cli.Usagef("--batch %d: expected 1 or more", cfg.Batch)
	case cfg.Wait < 0:
		return cli.Usagef("--wait %s: expected 0 or more", cfg.Wait)
	}
	return nil
}

// workFlags are those of create, upgrade and grant.
func workFlags(cmd *cobra.Command, cfg *provision.CreateConfig) {
	cmd.Flags().BoolVar(&cfg.DryRun, "dry-run", false, "only say what there is to do")
	cmd.Flags().IntVar(&cfg.PerHost, "parallel", cli.DefaultParallel, cli.ParallelUsage)
	cmd.Flags().IntVar(&cfg.Batch, "batch", 64, "shards in a transaction")
	cmd.Flags().DurationVar(&cfg.Wait, "wait", time.Minute, "how long to wait for another create, upgrade or grant")
}
