// Package bench is kiloshard-lab bench: it prints what the benchmarks of the module measure, as tables, JSON and plots.
package bench

import (
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// Command is kiloshard-lab bench.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measures Kiloshard beside its peers, in one run",
		Long: `Measures Kiloshard beside its peers, which take turns in one run. It needs no config: it
uses throw-away servers on this machine, or databases of its own on the server that
KILOSHARD_POSTGRES_DSN names.`,
		RunE: cli.NeedsCommand,
	}
	cmd.AddCommand(
		idsCommand(a), createCommand(a), routeCommand(a), migrateCommand(a), moveCommand(a), storesCommand(a), adoptCommand(a),
	)
	return cmd
}
