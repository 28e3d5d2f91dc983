package migrations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// runFlags are those of all commands that run migrations.
type runFlags struct {
	narrowed         string
	to               string // "" for none
	dryRun           bool
	parallel         int
	lockTimeout      time.Duration
	statementTimeout time.Duration
	retries          int
	canary           int
	check            string
	wave             int
	maxFailures      int
	by               string
	report           string
	replay           bool
}

func (f *runFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.narrowed, "shards", "", "only these shards, such as 0-9,77")
	flags.IntVar(&f.parallel, "parallel", cli.DefaultParallel, cli.ParallelUsage)
	flags.DurationVar(&f.lockTimeout, "lock-timeout", 5*time.Second, "how long a statement waits for a lock; 0 for the server's setting")
	flags.DurationVar(&f.statementTimeout, "statement-timeout", 0, "how long a statement may take (default the server's setting)")
	flags.IntVar(&f.retries, "retries", 5, "how often a shard is tried again when a lock is not free in time, or others collide with it")
	flags.IntVar(&f.canary, "canary", 0, "so many shards go first, from all hosts in turn; shards that have run the files before count")
	flags.StringVar(&f.check, "check", "", "a command that is run after the canary, with its shards in KILOSHARD_CANARY; if it fails the run ends")
	flags.IntVar(&f.wave, "wave", 0, "so many hosts at a time (default all)")
	flags.IntVar(&f.maxFailures, "max-failures", 3, "stop when more shards than this have failed; 0 for no limit")
	flags.StringVar(&f.report, "report", "", "write a report of the run into this HTML file")
	flags.StringVar(&f.by, "by", "", "who runs it, for the ledger (default user@machine)")
}

// config returns what the flags ask for.
func runConfig(ctx context.Context, a *cli.App, f *runFlags) (migrate.Config, error) {
	if f.parallel < 1 {
		return migrate.Config{}, cli.Usagef("--parallel %d: expected 1 or more", f.parallel)
	}
	for name, value := range map[string]int64{
		"canary": int64(f.canary), "wave": int64(f.wave), "max-failures": int64(f.maxFailures), "retries": int64(f.retries),
		"lock-timeout": int64(f.lockTimeout), "statement-timeout": int64(f.statementTimeout),
	} {
		if value < 0 {
			return migrate.Config{}, cli.Usagef("--%s: expected 0 or more", name)
		}
	}
	if f.check != "" && f.canary == 0 {
		return migrate.Config{}, cli.Usagef("--check: expected --canary with it")
	}
	cfg, err := readConfig(ctx, a, f.narrowed)
	if err != nil {
		return cfg, err
	}
	cfg.PerHost, cfg.LockTimeout, cfg.StatementTimeout = f.parallel, f.lockTimeout, f.statementTimeout
	cfg.Canary, cfg.Wave, cfg.MaxFailures, cfg.By = f.canary, f.wave, f.maxFailures, f.by
	cfg.Replay = f.replay
	if cfg.Retries = f.retries; f.retries == 0 {
		cfg.Retries = -1
	}
	if f.check != "" {
		cfg.Check = func(ctx context.Context, canary shards.Set) error { return checkCanary(ctx, a, f.check, canary) }
	}
	if a.Output != cli.JSON {
		cfg.Progress = a.Progress("migrate")
	}
	return cfg, nil
}

// runMigrations runs them up or down, prints what was done, and writes the report.
func runMigrations(ctx context.Context, a *cli.App, f *runFlags, cfg migrate.Config, run func(context.Context, migrate.Config) (migrate.Report, error)) error {
	file := newMigrateReport(f.report)
	if err := file.check(); err != nil {
		return err
	}
	cfg.Events = func(e migrate.Event) {
		file.Event(e)
		switch {
		case a.Output == cli.JSON:
			printEvent(a, e)
		case e.Kind == migrate.Interrupted:
			fmt.Fprintln(a.Stderr, "interrupted: what is under way is finished, no other shard is begun; Ctrl-C again cancels it on the servers")
		case e.Kind == migrate.ShardWaits:
			fmt.Fprintf(a.Stderr, "shard %d on %s waits%s\n", e.Shard, e.Host, e.Blockers)
		case e.Kind == migrate.FileResumed && e.Statement > 1:
			fmt.Fprintf(a.Stderr, "shard %d goes on with %s at its statement %d\n", e.Shard, e.File, e.Statement)
		case e.Kind == migrate.FileResumed:
			fmt.Fprintf(a.Stderr, "shard %d starts %s again, which was changed since it was begun\n", e.Shard, e.File)
		}
	}
	report, err := run(ctx, cfg)
	var partial *shards.PartialError
	if err != nil && !errors.As(err, &partial) {
		return cli.Usage(err) // about the files or the config: no host was asked
	}
	return errors.Join(printRun(a, cfg.Map, report, partial), file.write(report, partial, cfg.Map))
}

// checkCanary runs the user's command after the canary.
func checkCanary(ctx context.Context, a *cli.App, command string, canary shards.Set) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KILOSHARD_CANARY="+canary.String())
	cmd.Stdout, cmd.Stderr = cli.Raw(a.Stderr), cli.Raw(a.Stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--check %q: %w", command, err)
	}
	return nil
}

func upCommand(a *cli.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Runs the migrations that a shard has not run yet, on every shard",
		Long: `Runs tern's files on every shard that has not run them yet: a transaction for each shard and file, several
shards of each host at a time. When a file fails on a shard, the shard stays at the version before it and the
others go on, unless more than --max-failures have failed. After an interrupt it finishes the shards under way. Another run continues with the rest.

With -o json events go to standard error, one line of JSON each.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := runConfig(cmd.Context(), a, &f)
			if err != nil {
				return err
			}
			if cfg.To, err = target(cmd.Context(), cfg, f.to); err != nil {
				return err
			}
			if f.dryRun {
				return plan(cmd.Context(), a, cfg, false)
			}
			return runMigrations(cmd.Context(), a, &f, cfg, migrate.Up)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.to, "to", "", upUsage)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only print what it would do, as migrate plan does")
	cmd.Flags().BoolVar(&f.replay, "replay", false, "new shards run all files, instead of being made like one that has run them")
	return cmd
}

func downCommand(a *cli.App) *cobra.Command {
	var f runFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --to N",
		Short: "Takes shards back to a version with the down parts of later files",
		Long: `Takes shards back to a version by the down parts of the files above it, the newest first, with the same care
as up. When one of these files has no down part, nothing is run. It drops tables with their rows, so it asks
first; without a terminal it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := runConfig(cmd.Context(), a, &f)
			if err != nil {
				return err
			}
			cfg.Down = true
			if cfg.To, err = target(cmd.Context(), cfg, f.to); err != nil {
				return err
			}
			if f.dryRun {
				return plan(cmd.Context(), a, cfg, false)
			}
			what := fmt.Sprintf("%s (%s) will be taken back to version %d. What the files above it made there is dropped, with its rows.",
				cli.Count(narrowedTo(cfg).Len(), "shard"), narrowedTo(cfg), cfg.To)
			if err := a.Confirm(yes, what); err != nil {
				return err
			}
			return runMigrations(cmd.Context(), a, &f, cfg, migrate.Down)
		},
	}
	f.add(cmd)
	cli.YesFlag(cmd, &yes)
	cmd.Flags().StringVar(&f.to, "to", "", downUsage)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only print what it would do, as migrate plan --down does")
	_ = cmd.MarkFlagRequired("to") // fails only for a flag that is not there
	return cmd
}

func redoCommand(a *cli.App) *cobra.Command {
	var f runFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "redo",
		Short: "Takes the newest file back and runs it again",
		Long: `Takes the newest file back and runs it again, when all shards are at its version. It drops tables with their
rows, so it asks first; without a terminal it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := runConfig(cmd.Context(), a, &f)
			if err != nil {
				return err
			}
			version, err := onlyVersion(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("In %s (%s) the file of version %d will be taken back and run again. What it made there is dropped, with its rows.",
				cli.Count(narrowedTo(cfg).Len(), "shard"), narrowedTo(cfg), version)
			if err := a.Confirm(yes, what); err != nil {
				return err
			}
			cfg.To = version - 1
			if err := runMigrations(cmd.Context(), a, &f, cfg, migrate.Down); err != nil {
				return err
			}
			if cfg.Progress != nil {
				cfg.Progress = a.Progress("migrate")
			}
			cfg.To = version
			return runMigrations(cmd.Context(), a, &f, cfg, migrate.Up)
		},
	}
	f.add(cmd)
	cli.YesFlag(cmd, &yes)
	return cmd
}

// narrowedTo returns the shards that a run is about: those of --shards, or all.
func narrowedTo(cfg migrate.Config) shards.Set {
	if cfg.Shards.Len() == 0 {
		return cfg.Map.All()
	}
	return cfg.Shards
}

// onlyVersion returns the version that all shards stand at.
func onlyVersion(ctx context.Context, cfg migrate.Config) (int32, error) {
	status, err := migrate.Status(ctx, cfg)
	if err != nil {
		return 0, err
	}
	versions := map[int32]bool{}
	for _, host := range status.Hosts {
		for _, v := range host.Versions {
			versions[v.Version] = true
		}
		if host.NotCreated.Len() > 0 {
			return 0, fmt.Errorf("%s on %s: %w", cli.Count(host.NotCreated.Len(), "shard"), host.Host, migrate.ErrNotCreated)
		}
	}
	if len(versions) != 1 || versions[0] {
		return 0, fmt.Errorf("the shards stand at %s: expected one and the same, from 1 on; see kiloshard migrate status, and --shards", cli.Count(len(versions), "version"))
	}
	for version := range versions {
		return version, nil
	}
	panic("bug: a map of one is empty")
}
