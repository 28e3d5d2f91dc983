package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// upgradeResult is what kiloshard upgrade prints as JSON.
type upgradeResult struct {
	DryRun       bool          `json:"dry_run"`
	Helpers      []string      `json:"helpers"` // hosts whose helper schema was old
	Upgraded     shards.Set    `json:"upgraded"`
	Current      shards.Set    `json:"current"`
	Missing      shards.Set    `json:"missing"`
	Failed       []failedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Seconds      float64       `json:"seconds"`
}

func (a *app) upgradeCommand() *cobra.Command {
	var cfg provision.UpgradeConfig
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Brings what an older release installed to the present one",
		Long: `Brings what an older release installed to the present version: functions of shards, generators,
directories, the ledger, the helper schema; on all hosts at once. Services write meanwhile. Run again,
it changes nothing; interrupted, it finishes the shards under way, and another run goes on from there.
It makes nothing that is missing: that is create, which upgrades too. With --repair it puts back functions
that somebody has changed, as by ALTER FUNCTION.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWork(cfg.CreateConfig); err != nil {
				return err
			}
			_, m, err := a.loadMap(cmd.Context())
			if err != nil {
				return err
			}
			cfg.Map = m
			cfg.Progress = a.progress("upgrade")
			start := time.Now()
			report, err := provision.Upgrade(cmd.Context(), cfg)
			if report.Upgraded.Len()+report.Current.Len()+report.Missing.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(a.printUpgraded(cfg.DryRun, report, err, time.Since(start)), err)
		},
	}
	workFlags(cmd, &cfg.CreateConfig)
	cmd.Flags().BoolVar(&cfg.Repair, "repair", false, "also put back functions that somebody has changed since, as verify names them")
	return cmd
}

// --parallel is the same for all commands that work on shards.
const (
	defaultParallel = 4
	parallelUsage   = "shards, or batches of shards, of each host at a time"
)

// checkWork checks the flags of create and upgrade.
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

// workFlags are those of create and upgrade.
func workFlags(cmd *cobra.Command, cfg *provision.CreateConfig) {
	cmd.Flags().BoolVar(&cfg.DryRun, "dry-run", false, "only say what there is to do")
	cmd.Flags().IntVar(&cfg.PerHost, "parallel", defaultParallel, parallelUsage)
	cmd.Flags().IntVar(&cfg.Batch, "batch", 64, "shards in a transaction")
	cmd.Flags().DurationVar(&cfg.Wait, "wait", time.Minute, "how long to wait for another create, upgrade or grant")
}

func (a *app) printUpgraded(dryRun bool, report provision.UpgradeReport, err error, took time.Duration) error {
	result := upgradeResult{
		DryRun: dryRun, Helpers: append([]string{}, report.Helpers...), Upgraded: report.Upgraded, Current: report.Current,
		Missing: report.Missing, Failed: []failedShard{}, Seconds: took.Seconds(),
	}
	var partial *shards.PartialError
	if errors.As(err, &partial) {
		result.Failed, result.NotAttempted = failures(partial), partial.NotAttempted
	}
	return a.print(result, func() {
		did := "upgraded in " + took.Round(time.Millisecond).String()
		if dryRun {
			did = "to be upgraded"
		}
		a.say("%s %s, %s of the present version, %d missing, %d failed, %d not attempted",
			count(report.Upgraded.Len(), "shard"), did, thousands(report.Current.Len()), report.Missing.Len(), len(result.Failed), result.NotAttempted.Len())
		if len(report.Helpers) > 0 {
			a.say("helper schema of an older version on %s", strings.Join(report.Helpers, ", "))
		}
	})
}
