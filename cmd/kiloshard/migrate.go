package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "tern migrations over all shards", Args: cobra.NoArgs}
	cmd.AddCommand(
		a.migratePlanCommand(), a.migrateUpCommand(), a.migrateDownCommand(), a.migrateRedoCommand(),
		a.migrateStatusCommand(), a.migrateDriftCommand(), a.migrateNewCommand(), a.migrateForceCommand(),
	)
	return cmd
}

// migrateConfig reads the config, and the flag --shards.
func (a *app) migrateConfig(narrowed string) (migrate.Config, error) {
	cfg, m, err := a.loadMap()
	if err != nil {
		return migrate.Config{}, err
	}
	set, err := parseShards(m, narrowed)
	if err != nil {
		return migrate.Config{}, err
	}
	dir := cfg.MigrationsDir()
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return migrate.Config{}, usagef("no directory of migrations %s: expected one, see migrations in %s", dir, a.configFile)
	}
	return migrate.Config{Map: m, Shards: set, Files: os.DirFS(dir)}, nil
}
