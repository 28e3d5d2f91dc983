package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "tern migrations over all shards", RunE: needsCommand}
	cmd.AddCommand(
		a.migratePlanCommand(), a.migrateUpCommand(), a.migrateDownCommand(), a.migrateRedoCommand(),
		a.migrateStatusCommand(), a.migrateDriftCommand(), a.migrateNewCommand(), a.migrateForceCommand(),
		a.migrateAcceptCommand(), a.migrateHistoryCommand(),
	)
	cmd.PersistentFlags().BoolVar(&a.templateEnv, "template-env", false, "let files that are templates call env, expandenv and getHostByName")
	return cmd
}

// migrateConfig reads the map, and the flag --shards.
func (a *app) migrateConfig(ctx context.Context, narrowed string) (migrate.Config, error) {
	cfg, m, err := a.loadMap(ctx)
	if err != nil {
		return migrate.Config{}, err
	}
	return a.migrateConfigOf(cfg, m, narrowed)
}

// migrateConfigOf is migrateConfig for a map that is there.
func (a *app) migrateConfigOf(cfg shards.Config, m *shards.Map, narrowed string) (migrate.Config, error) {
	set, err := parseShards(m, narrowed)
	if err != nil {
		return migrate.Config{}, err
	}
	dir, named := cfg.MigrationsDir(), ""
	if dir != "" {
		named = " " + dir
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return migrate.Config{}, usagef("no directory of migrations%s: expected one, see migrations in %s", named, a.configFile)
	}
	return migrate.Config{Map: m, Shards: set, Files: os.DirFS(dir), TemplateEnv: a.templateEnv}, nil
}
