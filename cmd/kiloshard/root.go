package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	lookup func(name string) (string, bool) // of environment variables that the config names

	configFile string
	output     string // "table" or "json"
	started    bool   // the command line was understood, and a command began
}

// run runs one command line and returns the program's exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookup: os.LookupEnv}
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
			if a.output != "table" && a.output != "json" {
				return fmt.Errorf("-o %q: expected table or json", a.output)
			}
			a.started = true
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&a.configFile, "config", "c", defaultConfig, "the config file")
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "what to print: table or json")
	root.AddCommand(
		a.initCommand(), a.createCommand(), a.verifyCommand(), a.migrateCommand(), a.statusCommand(),
		a.mapCommand(), a.routeCommand(), a.idCommand(), a.benchCommand(), a.demoCommand(), a.versionCommand(), a.etcdServerCommand(),
	)
	return root
}
