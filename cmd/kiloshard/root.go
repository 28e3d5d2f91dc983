package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer // cleaned

	lookup func(name string) (string, bool) // of environment variables that the config names

	configFile string
	output     string // outputTable, outputJSON or outputPlain
	storeLimit time.Duration
	quiet      bool // nothing is printed but what was asked for, and errors
	started    bool // the command line was understood, and a command began

	templateEnv bool // of migrate: see its flag
}

// run runs one command line and returns the program's exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: cleaned{stdout}, stderr: cleaned{stderr}, lookup: os.LookupEnv}
	return a.execute(ctx, args)
}

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return a.exit(root.ExecuteContext(ctx))
}

// needsCommand is what a command does that only holds others, when none of these was named.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s: expected a command, see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	cmd.SuggestionsMinimumDistance = 2 // as cobra has it for the root
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "\n\nDid you mean this?\n\t" + strings.Join(similar, "\n\t")
	}
	return usagef("%s", text)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kiloshard",
		Short: "Shards Postgres the way Instagram did: thousands of schemas on a few hosts",
		Long: `Kiloshard shards Postgres the way Instagram did: thousands of logical shards, each
one a Postgres schema that makes its own IDs, spread over a few physical hosts.

Exit codes: 0 done, 1 failed, 2 wrong usage or config, 3 partly done and resumable.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return err // cobra itself would look only after this function
			}
			if !slices.Contains(outputs, a.output) {
				return fmt.Errorf("-o %q: expected table, json or plain", a.output)
			}
			if err := a.storeTimeout(cmd); err != nil {
				return err
			}
			if !cmd.Flags().Changed("config") {
				a.configFile = a.findConfig(cmd)
			}
			a.started = true
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&a.configFile, "config", "c", defaultConfig, "the config file (default $KILOSHARD_CONFIG, or "+defaultConfig+" here or in a directory above)")
	root.PersistentFlags().Lookup("config").DefValue = "" // so that the help does not tell it twice
	root.PersistentFlags().StringVarP(&a.output, "output", "o", outputTable, "what to print: table, json, or plain: no heads, and tabs between the columns")
	root.PersistentFlags().DurationVar(&a.storeLimit, "store-timeout", 2*time.Second, "how long the map's store may take to answer (default $"+storeVariable+", or 2s)")
	root.PersistentFlags().Lookup("store-timeout").DefValue = "0" // so that the help does not tell it twice
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print no progress, summaries and warnings")
	root.Version = programVersion()
	root.SetVersionTemplate("kiloshard {{.Version}}\n")
	root.AddCommand(
		a.initCommand(), a.createCommand(), a.upgradeCommand(), a.verifyCommand(), a.migrateCommand(), a.statusCommand(),
		a.mapCommand(), a.routeCommand(), a.idCommand(), a.benchCommand(), a.demoCommand(), a.versionCommand(), a.etcdServerCommand(),
		a.execCommand(), a.psqlCommand(), a.grantCommand(), a.moveCommand(), a.drainCommand(), a.rebalanceCommand(), a.openCommand(), a.manCommand(),
	)
	root.AddCommand(topics()...)
	strict(root)
	a.completions(root)
	return root
}

// strict has the commands that cobra adds refuse what they do not know: its own exit with 0.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needsCommand
		case "help":
			cmd.RunE = func(help *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || found.HasSubCommands() && len(rest) > 0 {
					return needsCommand(found, rest)
				}
				help.Run(help, args)
				return nil
			}
		}
	}
}
