package cluster

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// grantResult is the JSON output of kiloshard grant.
type grantResult struct {
	Role     string `json:"role"`
	ReadOnly bool   `json:"read_only"`
	Revoke   bool   `json:"revoke"`
	DryRun   bool   `json:"dry_run"`
	provision.GrantReport
	work
}

// GrantCommand is kiloshard grant.
func GrantCommand(a *cli.App) *cobra.Command {
	var cfg provision.GrantConfig
	cmd := &cobra.Command{
		Use:   "grant ROLE",
		Short: "Gives the role of a service its rights, on all shards",
		Long: `Gives a role the rights of a service on all shards: to use their schemas, to make IDs, and to read and write
rows; with --read-only only to read them. The rights cover tables of later migrations too, and create and
move give new and moved shards the rights that most others have. The role must exist on each host: only a
superuser can run CREATE ROLE. Other rights of the role stay. Only the owner can change a shard's version.

--revoke takes back all rights of the role on shards. A second run changes nothing; after an interrupt, run
it again. kiloshard verify names shards on which a role has fewer rights than on most.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWork(cfg.CreateConfig); err != nil {
				return err
			}
			if cfg.Revoke && cfg.ReadOnly {
				return cli.Usagef("expected either --revoke, which takes back all rights, or --read-only")
			}
			if cfg.Role = args[0]; cfg.Role == "" {
				return cli.Usagef("ROLE: expected the name of a role")
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			if !cfg.DryRun {
				a.Audit(cmd.Context(), m.Hosts(), nil)
			}
			cfg.Map = m
			cfg.Progress = a.Progress("grant")
			start := time.Now()
			report, err := provision.Grant(cmd.Context(), cfg)
			if report.Done.Len()+report.Missing.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(printGranted(a, cfg, report, err, time.Since(start)), err)
		},
	}
	workFlags(cmd, &cfg.CreateConfig)
	cmd.Flags().BoolVar(&cfg.ReadOnly, "read-only", false, "only the right to read")
	cmd.Flags().BoolVar(&cfg.Revoke, "revoke", false, "take all rights back")
	return cmd
}

func printGranted(a *cli.App, cfg provision.GrantConfig, report provision.GrantReport, err error, took time.Duration) error {
	result := grantResult{
		Role: cfg.Role, ReadOnly: cfg.ReadOnly, Revoke: cfg.Revoke, DryRun: cfg.DryRun,
		GrantReport: report, work: workDone(err, took),
	}
	return a.Print(result, func() {
		did := "granted to " + cfg.Role
		switch {
		case cfg.Revoke:
			did = "revoked from " + cfg.Role
		case cfg.ReadOnly:
			did += " to read"
		}
		a.Say("%s %s, %d missing, %s", cli.Count(report.Done.Len(), "shard"), result.did(did, cfg.DryRun), report.Missing.Len(), result.rest())
	})
}
