package migrations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
)

func newCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME",
		Short: "Writes the next migration file, for you to fill in",
		Long: `Writes the next migration file, with tern's template, into the directory of migrations, and prints its path:
004_add_likes.sql for "add likes" when there are three. It creates the directory, and overwrites no file.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := a.LocalOffline()
			if err != nil {
				return err
			}
			dir := cfg.MigrationsDir()
			if dir == "" {
				return cli.Usagef("no directory of migrations: expected one, see migrations in %s", a.ConfigFile)
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("cannot make the directory of migrations: %w", err)
			}
			name, err := migrate.NewFileName(os.DirFS(dir), strings.Join(args, " "))
			if err != nil {
				return cli.Usage(err)
			}
			path := filepath.Join(dir, name)
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if err != nil {
				return fmt.Errorf("cannot write the migration: %w", err)
			}
			_, err = file.WriteString(migrate.NewFileBody)
			if err := errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("cannot write the migration: %w", err)
			}
			return a.Print(map[string]string{"written": path}, func() { a.Value(path, "%s", path) })
		},
	}
}
