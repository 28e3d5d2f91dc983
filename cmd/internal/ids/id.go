// Package ids is kiloshard id: it makes IDs and takes them apart.
package ids

import (
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// Command is kiloshard id.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Makes IDs and takes them apart", RunE: cli.NeedsCommand}
	cmd.AddCommand(nextCommand(a), decodeCommand(a), encodeCommand(a), advanceCommand(a))
	return cmd
}
