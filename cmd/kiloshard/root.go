package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// run runs one command line and returns the program's exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: cleaned{stdout}, stderr: cleaned{stderr}, lookup: os.LookupEnv}
	return execute(ctx, a, args)
}

// execute runs one command line with what commands share, and returns the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return a.exit(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := a.newRoot(programVersion())
	root.AddCommand(
		a.initCommand(), a.createCommand(), a.upgradeCommand(), a.verifyCommand(), a.migrateCommand(), a.statusCommand(),
		a.mapCommand(), a.routeCommand(), a.idCommand(), a.benchCommand(), a.demoCommand(execute), a.versionCommand(), a.etcdServerCommand(),
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
