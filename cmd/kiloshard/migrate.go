package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "tern migrations over all shards", Args: cobra.NoArgs}
	cmd.AddCommand(a.migrateUpCommand(), a.migrateStatusCommand())
	return cmd
}

// migrateConfig reads the config, and the flag --shards.
func (a *app) migrateConfig(narrowed string) (migrate.Config, error) {
	cfg, m, err := a.loadMap()
	if err != nil {
		return migrate.Config{}, err
	}
	set, err := shards.ParseSet(narrowed)
	if err != nil {
		return migrate.Config{}, usageError{fmt.Errorf("--shards: %w", err)}
	}
	for _, r := range set.Ranges() {
		if !m.Has(r.Last) {
			return migrate.Config{}, usagef("--shards: shard %d, expected 0 to %d", r.Last, m.Len()-1)
		}
	}
	dir := cfg.MigrationsDir()
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return migrate.Config{}, usagef("no directory of migrations %s: expected one, see migrations in %s", dir, a.configFile)
	}
	return migrate.Config{Map: m, Shards: set, Files: os.DirFS(dir)}, nil
}

// upResult is what kiloshard migrate up prints as JSON.
type upResult struct {
	Target       int32         `json:"target"`
	Done         shards.Set    `json:"done"`
	UpToDate     shards.Set    `json:"up_to_date"`
	Steps        []step        `json:"steps"`
	Failed       []failedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Seconds      float64       `json:"seconds"`
}

type step struct {
	From   int32      `json:"from"`
	To     int32      `json:"to"`
	Shards shards.Set `json:"shards"`
}

func (a *app) migrateUpCommand() *cobra.Command {
	var narrowed string
	var to int32
	var parallel int
	var lockTimeout time.Duration
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Runs tern's files on every shard that they have not run on yet",
		Long: `Runs tern's files on every shard that they have not run on yet: a transaction for each
shard and file, several shards of each host at a time. A shard on which a file fails
stays at the version before it, and the others go on. Interrupted, it finishes the
shards under way. Another run takes up what is left.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("to") && to < 1 {
				return usagef("--to %d: expected a version from 1 on", to)
			}
			cfg, err := a.migrateConfig(narrowed)
			if err != nil {
				return err
			}
			cfg.To, cfg.PerHost, cfg.LockTimeout = to, parallel, lockTimeout
			cfg.Progress = a.progress("migrate")
			report, err := migrate.Up(cmd.Context(), cfg)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return usageError{err} // about the files or the config: no host was asked
			}
			return a.printUp(report, partial)
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	cmd.Flags().Int32Var(&to, "to", 0, "the version to reach (default the newest file's)")
	cmd.Flags().IntVar(&parallel, "parallel", 4, "shards of one host at a time")
	cmd.Flags().DurationVar(&lockTimeout, "lock-timeout", 0, "how long a statement waits for a lock (default the server's setting)")
	return cmd
}

// printUp prints what a run did, and returns the error that goes with it.
func (a *app) printUp(report migrate.Report, partial *shards.PartialError) error {
	result := upResult{
		Target: report.Target, Done: report.Done, UpToDate: report.UpToDate,
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

// migrateStatusResult is what kiloshard migrate status prints as JSON.
type migrateStatusResult struct {
	Files   []string     `json:"files"`
	Hosts   []versionsOf `json:"hosts"`
	Pending shards.Set   `json:"pending"`
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
			cfg, err := a.migrateConfig(narrowed)
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
	result := migrateStatusResult{Files: report.Files, Hosts: []versionsOf{}, Pending: report.Pending()}
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
	return a.print(result, func() { a.table(rows) })
}
