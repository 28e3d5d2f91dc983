package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// versionResult is the JSON output of kiloshard version.
type versionResult struct {
	Version string `json:"version"` // of the module; "(devel)" when built from a checkout
	Go      string `json:"go"`
}

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			result := versionResult{Version: programVersion(), Go: runtime.Version()}
			return a.Print(result, func() { a.Value(result.Version, "kiloshard %s, %s", result.Version, result.Go) })
		},
	}
}

// programVersion returns the version of the module that this program was built from.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
