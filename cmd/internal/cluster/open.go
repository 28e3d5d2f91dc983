package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/migrations"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// openResult is the JSON output of kiloshard open.
type openResult struct {
	Host    string     `json:"host"`
	Opened  shards.Set `json:"opened"`
	Created shards.Set `json:"created"`        // of them, those that were not there yet
	Version int        `json:"version"`        // of the map
	Made    string     `json:"made,omitempty"` // from a snapshot or not, and why, if there are many files
	DryRun  bool       `json:"dry_run,omitempty"`
}

// OpenCommand is kiloshard open.
func OpenCommand(a *cli.App) *cobra.Command {
	var text, host, by, why string
	var dryRun, replay bool
	cmd := &cobra.Command{
		Use:   "open --shards FIRST-LAST --host HOST",
		Short: "Opens a new range of shards on a host",
		Long: `Opens a new range of shards on a host of the map: it creates them, migrates them to the newest version of the
others, and then adds them to the map. Services never see a shard that is not ready. The range starts where
the map's shards end. After an interrupt, run it again. To add a host to the map, use kiloshard map edit. A
strategy that divides by the number of shards is refused, because keys would map to other shards.`,
		Example: "  kiloshard open --shards 2048-4095 --host pg-c",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by == "" {
				by = cli.Whoami()
			}
			return open(cmd.Context(), a, text, host, mapstore.Change{By: by, Why: why}, dryRun, replay)
		},
	}
	cmd.Flags().StringVar(&text, "shards", "", "the range, such as 2048-4095")
	cmd.Flags().StringVar(&host, "host", "", "where they are opened")
	cmd.Flags().StringVar(&by, "by", "", "who opens them, for the history (default user@machine)")
	cmd.Flags().StringVar(&why, "why", "", "why, for the history")
	cmd.Flags().BoolVar(&replay, "replay", false, "they run all files, instead of being made like one that has run them")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "make all checks, and change nothing")
	_ = cmd.MarkFlagRequired("shards")                         // fails only for a flag that is not there
	_ = cmd.MarkFlagRequired("host")                           // likewise
	_ = cmd.RegisterFlagCompletionFunc("host", a.CompleteHost) // likewise
	return cmd
}

func open(ctx context.Context, a *cli.App, text, host string, change mapstore.Change, dryRun, replay bool) error {
	file, store, now, err := a.OpenMap(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // all that it was to do is done
	set, err := newRange(now.Map, text, host)
	if err != nil {
		return err
	}
	c := now.Map.Config()
	c.Shards += set.Len()
	c.Placement = append(c.Placement, shards.Placement{Shards: set, Host: host})
	next, err := c.Map()
	if err != nil {
		return err
	}
	if err := shards.CheckChange(now.Map, next); err != nil { // before anything is made
		return err
	}
	change.Config = c
	if change.Why == "" {
		change.Why = fmt.Sprintf("shards %s are opened on %s", set, host)
	}
	run, err := toRun(ctx, a, file, now.Map)
	if err != nil {
		return err
	}
	run.Replay = replay
	result := openResult{Host: host, Opened: set, Version: now.Map.Version() + 1, DryRun: dryRun}
	began := time.Now()
	if checker, ok := store.(mapstore.Checker); ok { // before anything is made
		if err := checker.Check(ctx, change); err != nil {
			return err
		}
	}
	if !dryRun {
		if result.Created, result.Made, err = ready(ctx, a, run, next.WithCredentials(cli.PasswordCommand(file)), set); err != nil {
			return err
		}
		made, err := store.Swap(ctx, now.Map.Version(), change)
		if err != nil {
			return fmt.Errorf("shards %s are ready on %s, and the map does not name them: run it again: %w", set, host, err)
		}
		result.Version = made.Map.Version()
		a.AuditMap(ctx)
	}
	return a.Print(result, func() {
		if dryRun {
			a.Say("%s (%s) would be opened on %s; nothing is changed", cli.Count(set.Len(), "shard"), set, host)
			return
		}
		if result.Made != "" {
			a.Say("%s", result.Made)
		}
		a.Say("%s (%s) opened on %s in %s, with version %d of the map", cli.Count(set.Len(), "shard"), set, host, time.Since(began).Round(time.Millisecond), result.Version)
	})
}

// newRange reads the shards to be opened: those that follow the map's.
func newRange(m *shards.Map, text, host string) (shards.Set, error) {
	set, err := shards.ParseSet(text)
	if err != nil {
		return set, cli.Usage(fmt.Errorf("--shards: %w", err))
	}
	if ranges := set.Ranges(); len(ranges) != 1 || int(ranges[0].First) != m.Len() {
		return set, cli.Usagef("--shards %s: expected one range that begins with %d, since the map has shards 0 to %d", text, m.Len(), m.Len()-1)
	}
	if _, ok := m.HostNamed(host); ok {
		return set, nil
	}
	return set, cli.Usagef("--host %s: expected the name of a host of the map; kiloshard map edit adds one", host)
}

// ready creates the shards of the next map, and runs the migrations on them. It returns those that it created, and how they were made.
func ready(ctx context.Context, a *cli.App, run migrate.Config, next *shards.Map, set shards.Set) (created shards.Set, made string, err error) {
	report, err := provision.Create(ctx, provision.CreateConfig{Map: next, Progress: a.Progress("create")})
	if err != nil || run.To == 0 {
		return report.Created, "", err
	}
	run.Map, run.Shards, run.By, run.Progress = next, set, cli.Whoami(), a.Progress("migrate")
	done, err := migrate.Up(ctx, run)
	return report.Created, migrations.NewShards(done), err
}

// toRun returns the migrations that new shards need to be like the others: To is the highest version of those. It warns when
// the config names none and the others have run none, and fails when they have.
func toRun(ctx context.Context, a *cli.App, file shards.Config, now *shards.Map) (migrate.Config, error) {
	cfg := migrate.Config{Map: now}
	if file.MigrationsDir() != "" {
		var err error
		if cfg, err = migrations.ConfigOf(a, file, now, ""); err != nil {
			return cfg, err
		}
	}
	status, err := migrate.Status(ctx, cfg)
	if err != nil {
		return cfg, err
	}
	for _, h := range status.Hosts {
		for _, v := range h.Versions {
			cfg.To = max(cfg.To, v.Version)
		}
	}
	switch {
	case cfg.Files != nil:
		return cfg, nil
	case cfg.To > 0:
		return cfg, cli.Usagef("%s names no migrations, and the shards are at version %d: expected the directory, so that new shards get their tables", a.ConfigFile, cfg.To)
	}
	a.Warn("warning: %s names no migrations: the new shards have no tables", a.ConfigFile)
	return cfg, nil
}
