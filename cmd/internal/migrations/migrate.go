// Package migrations is kiloshard migrate: tern migrations over all shards.
package migrations

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// Command is kiloshard migrate.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Runs tern migrations over all shards", RunE: cli.NeedsCommand}
	cmd.AddCommand(
		planCommand(a), upCommand(a), downCommand(a), redoCommand(a),
		statusCommand(a), driftCommand(a), newCommand(a), forceCommand(a),
		acceptCommand(a), historyCommand(a),
	)
	cmd.PersistentFlags().BoolVar(&a.TemplateEnv, "template-env", false, "let files that are templates call env, expandenv and getHostByName")
	return cmd
}

// readConfig reads the map, and the flag --shards.
func readConfig(ctx context.Context, a *cli.App, narrowed string) (migrate.Config, error) {
	cfg, m, err := a.LoadMap(ctx)
	if err != nil {
		return migrate.Config{}, err
	}
	return ConfigOf(a, cfg, m, narrowed)
}

// ConfigOf is readConfig for a map that was loaded already.
func ConfigOf(a *cli.App, cfg shards.Config, m *shards.Map, narrowed string) (migrate.Config, error) {
	set, err := cli.ParseShards(m, narrowed)
	if err != nil {
		return migrate.Config{}, err
	}
	dir, named := cfg.MigrationsDir(), ""
	if dir != "" {
		named = " " + dir
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return migrate.Config{}, cli.Usagef("no directory of migrations%s: expected one, see migrations in %s", named, a.ConfigFile)
	}
	return migrate.Config{Map: m, Shards: set, Files: within(dir), TemplateEnv: a.TemplateEnv}, nil
}

// within returns the files in a directory and below it. A link that leads out of it cannot be read.
func within(dir string) fs.FS {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return os.DirFS(dir) // which says what is wrong when it is read
	}
	return root.FS()
}
