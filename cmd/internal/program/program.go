// Package program runs command lines, and is the command line of kiloshard.
package program

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// Root returns the command of a program, with all others below it.
type Root = func(*cli.App) *cobra.Command

// Main runs the command line of this process, and exits.
func Main(root Root) {
	ctx, stop := signals(os.Stderr)
	code := Run(ctx, cli.New(os.Stdin, os.Stdout, os.Stderr, os.LookupEnv), root, os.Args[1:])
	stop()
	os.Exit(code)
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, a *cli.App, root Root, args []string) int {
	top := root(a)
	top.SetArgs(args)
	top.SetIn(a.Stdin)
	top.SetOut(a.Stdout)
	top.SetErr(a.Stderr)
	cmd, err := top.ExecuteContextC(ctx)
	if again := cli.WithoutNegative(cmd, err, args); again != nil {
		return Run(ctx, a, root, again)
	}
	return a.Exit(cmd, err)
}

// Finish gives the commands below a root help that fits a terminal, and has them refuse what they do not know and empty values.
func Finish(root *cobra.Command) {
	fitHelp(root)
	strict(root)
	root.SetFlagErrorFunc(namedFlag)
	nameArguments(root)
	refuseEmpty(root)
}

// strict makes the commands that cobra adds refuse unknown arguments, for which they exit with 0.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, cli.NeedsCommand
		case "help":
			cmd.ValidArgsFunction = withTopics(root, cmd.ValidArgsFunction)
			cmd.RunE = func(help *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				switch {
				case err == nil && (len(rest) == 0 || !found.HasSubCommands()):
				case found == root && len(rest) > 0:
					return unknownTopic(root, rest)
				default:
					return cli.NeedsCommand(found, rest)
				}
				help.Run(help, args)
				return nil
			}
		}
	}
}
