package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// migrateStatusResult is what kiloshard migrate status prints as JSON.
type migrateStatusResult struct {
	Files   []string     `json:"files"`
	Hosts   []versionsOf `json:"hosts"`
	Pending shards.Set   `json:"pending"`

	Changed []changedFile `json:"changed"`
}

type versionsOf struct {
	Host       string        `json:"host"`
	Versions   []atVersion   `json:"versions"`
	NotCreated shards.Set    `json:"not_created"`
	Failed     []failedShard `json:"failed"`
	Error      string        `json:"error,omitempty"`
}

type atVersion struct {
	Version int32      `json:"version"`
	Pending int        `json:"pending"`
	Shards  shards.Set `json:"shards"`
}

func (a *app) migrateStatusCommand() *cobra.Command {
	var narrowed string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Prints at which version the shards stand",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.migrateConfig(cmd.Context(), narrowed)
			if err != nil {
				return err
			}
			report, err := migrate.Status(cmd.Context(), cfg)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return usageError{err}
			}
			return errors.Join(a.printMigrateStatus(report), err)
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	return cmd
}

func (a *app) printMigrateStatus(report migrate.StatusReport) error {
	result := migrateStatusResult{Files: report.Files, Hosts: []versionsOf{}, Pending: report.Pending(), Changed: changedFiles(report.Changed)}
	rows := [][]string{{"HOST", ">SHARDS", ">VERSION", "FILE", ">PENDING"}}
	for _, host := range report.Hosts {
		versions := versionsOf{Host: host.Host, Versions: []atVersion{}, NotCreated: host.NotCreated, Failed: failures(&shards.PartialError{Failed: host.Failed})}
		for _, v := range host.Versions {
			versions.Versions = append(versions.Versions, atVersion(v))
			file := "-"
			if v.Version > 0 && int(v.Version) <= len(report.Files) {
				file = report.Files[v.Version-1]
			}
			rows = append(rows, []string{host.Host, thousands(v.Shards.Len()), fmt.Sprint(v.Version), file, fmt.Sprint(v.Pending)})
		}
		if n := host.NotCreated.Len(); n > 0 {
			rows = append(rows, []string{host.Host, thousands(n), "-", "not created", fmt.Sprint(len(report.Files))})
		}
		if n := len(host.Failed); n > 0 {
			rows = append(rows, []string{host.Host, thousands(n), "?", host.Failed[0].Err.Error(), "?"})
		}
		if host.Err != nil {
			versions.Error = host.Err.Error()
			rows = append(rows, []string{host.Host, "?", "?", "does not answer", "?"})
		}
		result.Hosts = append(result.Hosts, versions)
	}
	a.warnOfChanges(report.Changed)
	return a.print(result, func() { a.table(rows) })
}
