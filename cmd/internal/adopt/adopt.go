// Package adopt is kiloshard adopt: one database becomes shards while it serves.
package adopt

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Command is kiloshard adopt. Its commands plan and queries only read; the others are the gates, and the way back.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "adopt", Short: "Makes shards of one database, while it serves", RunE: cli.NeedsCommand}
	cmd.AddCommand(planCommand(a), queriesCommand(a), viewsCommand(a), statusCommand(a), tablesCommand(a), finishCommand(a), backCommand(a))
	return cmd
}

// database is the flags of both commands: they name the database, the file of decisions and that of the report.
type database struct {
	from, key, file, report string
}

func (d *database) flags(cmd *cobra.Command, report string) {
	cmd.Flags().StringVar(&d.report, "report", "", report)
	cmd.Flags().StringVar(&d.from, "from", "", "the DSN of the database; ${NAME} is a variable of the environment")
	cmd.Flags().StringVar(&d.key, "key", "", "the column whose value decides the shard of a row, such as users.id (default: that of the file)")
	cmd.Flags().StringVar(&d.file, "file", "adopt.yaml", "the file of decisions")
	_ = cmd.MarkFlagRequired("from") // fails only for a flag that is not there
}

// config returns the database and the decisions, and checks that the report can be written. The file may be missing if there is a key.
func (d *database) config(a *cli.App) (adopt.Config, error) {
	cfg, err := d.decided(a)
	if err == nil {
		err = checkReport(d.report)
	}
	return cfg, err
}

func (d *database) decided(a *cli.App) (adopt.Config, error) {
	host, err := shards.NewHost("the database", d.from, a.Lookup)
	if wrong := (*shards.FieldError)(nil); errors.As(err, &wrong) {
		wrong.Field = "--from"
	}
	if err != nil {
		return adopt.Config{}, err
	}
	if _, err := connect.Check(host); err != nil {
		return adopt.Config{}, cli.Usagef("--from: %w", err)
	}
	cfg := adopt.Config{Host: host, Key: d.key}
	text, err := os.ReadFile(d.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.key == "":
		return adopt.Config{}, cli.Usagef("there is no %s: expected --key with the column that has the key, such as users.id", d.file)
	case errors.Is(err, fs.ErrNotExist):
		return cfg, nil
	case err != nil:
		return adopt.Config{}, cli.Usage(err)
	}
	cfg.File, err = adopt.ParseFile(d.file, text)
	return cfg, err
}
