// Package lab is the command line of kiloshard-lab. What it needs, such as servers, Docker and plots, stays out of kiloshard.
package lab

import (
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/bench"
	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/demo"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
)

// Root returns the program's command, with all others below it.
func Root(a *cli.App) *cobra.Command {
	root := a.NewRoot("kiloshard-lab", program.Version())
	root.Short = "Shows and measures Kiloshard on throw-away servers"
	root.Long = `Shows and measures Kiloshard on throw-away servers. They come from KILOSHARD_POSTGRES_DSN,
the server programs of this machine, Docker, or a download.

Exit codes: 0 done, 1 failed, 2 wrong usage.`
	root.AddCommand(demo.Command(a, Root), bench.Command(a), program.VersionCommand(a))
	program.Finish(root)
	return root
}
