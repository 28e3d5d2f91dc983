package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) migrateForceCommand() *cobra.Command {
	var narrowed string
	var version int32
	var yes bool
	cmd := &cobra.Command{
		Use:   "force --shards LIST --version N",
		Short: "Sets the version of shards without running anything",
		Long: `Sets the version of shards without running anything, and enters that into the ledger: for
shards in which somebody has done by hand what a file would have done, or undone it. Version
0 stands for nothing at all. It asks before; without a terminal it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if narrowed == "" || !cmd.Flags().Changed("version") {
				return usagef("migrate force: expected --shards and --version")
			}
			cfg, err := a.migrateConfig(cmd.Context(), narrowed)
			if err != nil {
				return err
			}
			if !yes {
				if err := a.confirm(fmt.Sprintf("%s (%s) will be set to version %d, and nothing will be run there.",
					count(cfg.Shards.Len(), "shard"), cfg.Shards, version)); err != nil {
					return err
				}
			}
			report, err := migrate.Force(cmd.Context(), cfg, version)
			var partial *shards.PartialError
			if err != nil && !errors.As(err, &partial) {
				return usageError{err} // about the files or the version: no host was asked
			}
			return a.printRun(report, partial)
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "which shards, such as 0-9,77")
	cmd.Flags().Int32Var(&version, "version", 0, "the version to set")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks on the terminal whether to go on. Without a terminal nobody can say yes.
func (a *app) confirm(what string) error {
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return usagef("%s Standard input is no terminal: expected --yes", what)
	}
	fmt.Fprintf(a.stderr, "%s Type yes to go on: ", what)
	answer, err := bufio.NewReader(file).ReadString('\n')
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}
	return errors.Join(errors.New("not confirmed: nothing was done"), err)
}
