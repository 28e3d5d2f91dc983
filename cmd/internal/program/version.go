package program

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// versionResult is the JSON output of version.
type versionResult struct {
	Version string `json:"version"` // of the module; "(devel)" when built from a checkout
	Go      string `json:"go"`
}

// VersionCommand is the command version of a program.
func VersionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			result := versionResult{Version: Version(), Go: runtime.Version()}
			return a.Print(result, func() { a.Value(result.Version, "%s %s, %s", cmd.Root().Name(), result.Version, result.Go) })
		},
	}
}

// Version returns the version of the module that this program was built from.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
