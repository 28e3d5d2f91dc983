package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/bench"
	"github.com/kiloshard/kiloshard/cmd/internal/cleaner"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/cluster"
	"github.com/kiloshard/kiloshard/cmd/internal/demo"
	"github.com/kiloshard/kiloshard/cmd/internal/ids"
	"github.com/kiloshard/kiloshard/cmd/internal/maps"
	"github.com/kiloshard/kiloshard/cmd/internal/migrations"
	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/cmd/internal/query"
	"github.com/kiloshard/kiloshard/cmd/internal/status"
)

// run runs one command line and returns the program's exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, cli.New(stdin, stdout, stderr, os.LookupEnv), args)
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, a *cli.App, args []string) int {
	root := root(a)
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if again := cli.WithoutNegative(cmd, err, args); again != nil {
		return execute(ctx, a, again)
	}
	return a.Exit(cmd, err)
}

// root returns the program's command, with all others below it.
func root(a *cli.App) *cobra.Command {
	root := a.NewRoot(programVersion())
	root.AddCommand(
		cluster.InitCommand(a), cluster.CreateCommand(a), cluster.UpgradeCommand(a), cluster.OpenCommand(a), cluster.GrantCommand(a), cluster.VerifyCommand(a),
		migrations.Command(a), maps.Command(a), ids.Command(a), status.Command(a),
		cleaner.Command(a), query.RouteCommand(a), query.PsqlCommand(a), query.ExecCommand(a),
		moves.Command(a), moves.DrainCommand(a), moves.RebalanceCommand(a), moves.SplitCommand(a),
		bench.Command(a), demo.Command(a, execute),
		manCommand(), versionCommand(a),
	)
	root.AddCommand(topicCommands()...)
	listTopics(root)
	fitHelp(root)
	strict(root)
	cli.NameArguments(root)
	cli.RefuseEmpty(root)
	a.Completions(root)
	return root
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

// withTopics completes help topics too: cobra itself offers only commands.
func withTopics(root *cobra.Command, commands cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := commands(cmd, args, word)
		for _, topic := range root.Commands() {
			if len(args) == 0 && topic.IsAdditionalHelpTopicCommand() && strings.HasPrefix(topic.Name(), word) {
				found = append(found, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return found, directive
	}
}
