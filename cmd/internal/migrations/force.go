package migrations

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func forceCommand(a *cli.App) *cobra.Command {
	var narrowed string
	var version int32
	var yes bool
	cmd := &cobra.Command{
		Use:   "force --shards LIST --to N",
		Short: "Sets the version of shards without running anything",
		Long: `Sets the version of shards without running anything, and records that in the ledger: for shards where the
work of a file was done, or undone, by hand. Version 0 means that no file has run. It asks first; without a
terminal it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if narrowed == "" || !cmd.Flags().Changed("to") {
				return cli.Usagef("migrate force: expected --shards and --to")
			}
			cfg, err := readConfig(cmd.Context(), a, narrowed)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s (%s) will be set to version %d, and nothing will be run there.", cli.Count(cfg.Shards.Len(), "shard"), cfg.Shards, version)
			if err := a.Confirm(yes, what); err != nil {
				return err
			}
			report, err := migrate.Force(cmd.Context(), cfg, version)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return cli.Usage(err) // about the files or the version: no host was asked
			}
			return printRun(a, cfg.Map, report, partial)
		},
	}
	cli.YesFlag(cmd, &yes)
	cmd.Flags().StringVar(&narrowed, "shards", "", "which shards, such as 0-9,77")
	cmd.Flags().Int32Var(&version, "to", 0, "the version to set; 0 for none")
	return cmd
}
