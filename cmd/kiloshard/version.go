package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionResult is what kiloshard version prints as JSON.
type versionResult struct {
	Version string `json:"version"` // of the module; "(devel)" when built from a checkout
	Go      string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			result := versionResult{Version: "(devel)", Go: runtime.Version()}
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				result.Version = info.Main.Version
			}
			return a.print(result, func() { a.say("kiloshard %s, %s", result.Version, result.Go) })
		},
	}
}
