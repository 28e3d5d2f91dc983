// Package cluster has the commands that make what the map names, and compare it with the map: init, create, upgrade, open,
// grant and verify.
package cluster

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// createResult is the JSON output of kiloshard create.
type createResult struct {
	DryRun bool `json:"dry_run,omitempty"`
	provision.CreateReport
	Copies []shardCopy `json:"copies"` // of shards that are on two hosts; they are left alone
	work
}

type shardCopy struct {
	Shard  shards.Number `json:"shard"`
	Schema string        `json:"schema"`
	Host   string        `json:"host"`
	Home   string        `json:"home"`
}

// CreateCommand is kiloshard create.
func CreateCommand(a *cli.App) *cobra.Command {
	var cfg provision.CreateConfig
	var empty string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Creates the shards that the map names and the hosts lack",
		Long: `Creates the shards, generators and extensions that the map names and the hosts do not have, and upgrades what
an older release made. It works on all hosts at once. A second run changes nothing. After an interrupt it
finishes the shards under way; run it again to continue.

It creates nothing anywhere when a host does not answer, or has a schema of that name that is not a shard, or
when a shard is missing that the ledger of migrations knows: that shard was dropped, or its host was restored
to an earlier state. Restore it, or create it again without rows by --empty.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWork(cfg); err != nil {
				return err
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			if cfg.Empty, err = cli.ParseSet(m, "--empty", empty); err != nil {
				return err
			}
			cfg.Map = m
			cfg.Progress = a.Progress("create")
			start := time.Now()
			report, err := provision.Create(cmd.Context(), cfg)
			if report.Created.Len()+report.Completed.Len()+report.Upgraded.Len()+report.Existed.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(printCreated(a, m, cfg.DryRun, report, err, time.Since(start)), err)
		},
	}
	workFlags(cmd, &cfg)
	cmd.Flags().StringVar(&empty, "empty", "", "make these shards again, with no rows, although they were there before, such as 3,7")
	return cmd
}

// sayExtensions prints the extensions that were made on hosts.
func sayExtensions(a *cli.App, dryRun bool, made []string) {
	if len(made) == 0 {
		return
	}
	did := "created"
	if dryRun {
		did = "to be created"
	}
	a.Say("extensions %s: %s", did, strings.Join(made, ", "))
}

func printCreated(a *cli.App, m *shards.Map, dryRun bool, report provision.CreateReport, err error, took time.Duration) error {
	report.Generators = append([]string{}, report.Generators...)
	result := createResult{DryRun: dryRun, CreateReport: report, Copies: []shardCopy{}, work: workDone(err, took)}
	for _, c := range report.Copies {
		for n := range c.Shards.All() {
			result.Copies = append(result.Copies, shardCopy{n, m.Schema(n), c.Host, c.Home})
		}
		a.Warn("warning: %s", c)
	}
	return a.Print(result, func() {
		a.Say("%s %s, %s there already, %s; %s on %s", cli.Count(report.Created.Len(), "shard"), result.did("created", dryRun),
			cli.Thousands(report.Existed.Len()+report.Completed.Len()), result.rest(), cli.Count(m.Len(), "shard"), cli.Count(len(m.Hosts()), "host"))
		if report.Completed.Len() > 0 {
			did := "have it now"
			if dryRun {
				did = "are to get it"
			}
			a.Say("of these, %s lacked something that the map asks for, such as a directory's tables, and %s", cli.Count(report.Completed.Len(), "shard"), did)
		}
		if report.Upgraded.Len() > 0 {
			did := "upgraded"
			if dryRun {
				did = "to be upgraded"
			}
			a.Say("%s of an older version %s", cli.Count(report.Upgraded.Len(), "shard"), did)
		}
		if len(result.Generators) > 0 {
			a.Say("generators created: %s", strings.Join(result.Generators, ", "))
		}
		sayExtensions(a, dryRun, result.Extensions)
	})
}
