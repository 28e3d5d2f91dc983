package program

import (
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/adopt"
	"github.com/kiloshard/kiloshard/cmd/internal/cleaner"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/cluster"
	"github.com/kiloshard/kiloshard/cmd/internal/ids"
	"github.com/kiloshard/kiloshard/cmd/internal/maps"
	"github.com/kiloshard/kiloshard/cmd/internal/migrations"
	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/cmd/internal/query"
	"github.com/kiloshard/kiloshard/cmd/internal/status"
)

// Kiloshard is the [Root] of kiloshard.
func Kiloshard(a *cli.App) *cobra.Command {
	root := a.NewRoot("kiloshard", Version())
	root.Short = "Shards Postgres the way Instagram did: thousands of schemas on a few hosts"
	root.Long = `Kiloshard shards Postgres the way Instagram did: thousands of logical shards, each
one a Postgres schema that makes its own IDs, spread over a few physical hosts.

Exit codes: 0 done, 1 failed, 2 wrong usage or config, 3 partly done and resumable.`
	a.FindsConfig(root)
	root.AddCommand(
		cluster.InitCommand(a), cluster.CreateCommand(a), cluster.UpgradeCommand(a), cluster.OpenCommand(a), cluster.GrantCommand(a), cluster.VerifyCommand(a),
		migrations.Command(a), maps.Command(a), ids.Command(a), status.Command(a),
		adopt.Command(a), cleaner.Command(a), query.RouteCommand(a), query.PsqlCommand(a), query.ExecCommand(a),
		moves.Command(a), moves.DrainCommand(a), moves.RebalanceCommand(a), moves.SplitCommand(a),
		manCommand(), VersionCommand(a), labCommand("bench"), labCommand("demo"),
	)
	root.AddCommand(topicCommands(root)...)
	listTopics(root)
	Finish(root)
	a.Completions(root)
	return root
}

// labCommand refers to a command of kiloshard-lab.
func labCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "In another program, kiloshard-lab", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cli.Usagef("%s is in another program, kiloshard-lab: go run ./cmd/kiloshard-lab %[1]s", name)
		},
	}
}
