package migrations

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// migrateStatusResult is the JSON output of kiloshard migrate status.
type migrateStatusResult struct {
	Files   []string     `json:"files"`
	Hosts   []versionsOf `json:"hosts"`
	Pending shards.Set   `json:"pending"`

	Changed   []migrate.ChangedFile `json:"changed"`
	Unwritten []string              `json:"unwritten"` // files that have no SQL in them yet
}

type versionsOf struct {
	Host       string                  `json:"host"`
	Versions   []migrate.VersionStatus `json:"versions"`
	NotCreated shards.Set              `json:"not_created"`
	Failed     []cli.FailedShard       `json:"failed"`
	Error      string                  `json:"error,omitempty"`
}

func statusCommand(a *cli.App) *cobra.Command {
	var narrowed string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Prints the versions of the shards",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := readConfig(cmd.Context(), a, narrowed)
			if err != nil {
				return err
			}
			report, err := migrate.Status(cmd.Context(), cfg)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return cli.Usage(err)
			}
			return errors.Join(printMigrateStatus(a, cfg, report), err, errors.Join(migrate.Replaced(report.Changed)...))
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	return cmd
}

func printMigrateStatus(a *cli.App, cfg migrate.Config, report migrate.StatusReport) error {
	result := migrateStatusResult{Unwritten: listOf(report.Unwritten), Files: report.Files, Hosts: []versionsOf{}, Pending: report.Pending(), Changed: listOf(report.Changed)}
	rows := [][]string{{"HOST", ">SHARDS", ">VERSION", "FILE", ">PENDING", "BEHIND"}}
	for _, host := range report.Hosts {
		versions := versionsOf{Host: host.Host, Versions: listOf(host.Versions), NotCreated: host.NotCreated, Failed: cli.Failures(&shards.PartialError{Failed: host.Failed})}
		for _, v := range host.Versions {
			file := "-"
			if v.Version > 0 && int(v.Version) <= len(report.Files) {
				file = report.Files[v.Version-1]
			}
			behind := ""
			if v.Pending > 0 {
				behind = a.ShortSet(v.Shards)
			}
			rows = append(rows, []string{host.Host, cli.Thousands(v.Shards.Len()), fmt.Sprint(v.Version), file, fmt.Sprint(v.Pending), behind})
		}
		if n := host.NotCreated.Len(); n > 0 {
			rows = append(rows, []string{host.Host, cli.Thousands(n), "-", "not created", fmt.Sprint(len(report.Files)), a.ShortSet(host.NotCreated)})
		}
		if n := len(host.Failed); n > 0 {
			rows = append(rows, []string{host.Host, cli.Thousands(n), "?", host.Failed[0].Err.Error(), "?", a.ShortSet(cli.NumbersOf(host.Failed))})
		}
		if host.Err != nil {
			versions.Error = host.Err.Error()
			expected := 0
			for n := range narrowedTo(cfg).All() {
				if cfg.Map.Host(n).Name == host.Host {
					expected++
				}
			}
			rows = append(rows, []string{host.Host, cli.Thousands(expected), "?", cli.MissingHost(host.Err, "does not answer"), "?", ""})
		}
		result.Hosts = append(result.Hosts, versions)
	}
	warnOfChanges(a, report.Changed)
	for _, name := range report.Unwritten {
		a.Warn("%s is not written yet: migrate up refuses to run it until it is", name)
	}
	return a.Print(result, func() { a.Table(rows) })
}
