package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) migrateForceCommand() *cobra.Command {
	var narrowed string
	var version int32
	var yes bool
	cmd := &cobra.Command{
		Use:   "force --shards LIST --to N",
		Short: "Sets the version of shards without running anything",
		Long: `Sets the version of shards without running anything, and enters that into the ledger: for
shards in which somebody has done by hand what a file would have done, or undone it. Version
0 stands for nothing at all. It asks before; without a terminal it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if narrowed == "" || !cmd.Flags().Changed("to") {
				return usagef("migrate force: expected --shards and --to")
			}
			cfg, err := a.migrateConfig(cmd.Context(), narrowed)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s (%s) will be set to version %d, and nothing will be run there.", count(cfg.Shards.Len(), "shard"), cfg.Shards, version)
			if err := a.confirm(yes, what); err != nil {
				return err
			}
			report, err := migrate.Force(cmd.Context(), cfg, version)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return usage(err) // about the files or the version: no host was asked
			}
			return a.printRun(cfg.Map, report, partial)
		},
	}
	yesFlag(cmd, &yes)
	cmd.Flags().StringVar(&narrowed, "shards", "", "which shards, such as 0-9,77")
	cmd.Flags().Int32Var(&version, "to", 0, "the version to set; 0 for none")
	return cmd
}
