package cluster

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// upgradeResult is the JSON output of kiloshard upgrade.
type upgradeResult struct {
	DryRun bool `json:"dry_run"`
	provision.UpgradeReport
	work
}

// UpgradeCommand is kiloshard upgrade.
func UpgradeCommand(a *cli.App) *cobra.Command {
	var cfg provision.UpgradeConfig
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Upgrades what an older release installed",
		Long: `Upgrades what an older release installed: functions of shards, generators, directories, the ledger, the
helper schema. It works on all hosts at once, while services write. A second run changes nothing; after an
interrupt it finishes the shards under way, and another run continues. It makes missing extensions of the map, and
no missing shards; kiloshard create does, and upgrades too. --repair restores functions that were changed, as by ALTER FUNCTION.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWork(cfg.CreateConfig); err != nil {
				return err
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			cfg.Map = m
			cfg.Progress = a.Progress("upgrade")
			start := time.Now()
			report, err := provision.Upgrade(cmd.Context(), cfg)
			if report.Upgraded.Len()+report.Current.Len()+report.Missing.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(printUpgraded(a, cfg.DryRun, report, err, time.Since(start)), err)
		},
	}
	workFlags(cmd, &cfg.CreateConfig)
	cmd.Flags().BoolVar(&cfg.Repair, "repair", false, "also restore functions that were changed, as verify names them")
	return cmd
}

func printUpgraded(a *cli.App, dryRun bool, report provision.UpgradeReport, err error, took time.Duration) error {
	report.Helpers = append([]string{}, report.Helpers...)
	result := upgradeResult{DryRun: dryRun, UpgradeReport: report, work: workDone(err, took)}
	return a.Print(result, func() {
		a.Say("%s %s, %s of the present version, %d missing, %s", cli.Count(report.Upgraded.Len(), "shard"),
			result.did("upgraded", dryRun), cli.Thousands(report.Current.Len()), report.Missing.Len(), result.rest())
		if len(report.Helpers) > 0 {
			a.Say("helper schema of an older version on %s", strings.Join(report.Helpers, ", "))
		}
		sayExtensions(a, dryRun, report.Extensions)
	})
}
