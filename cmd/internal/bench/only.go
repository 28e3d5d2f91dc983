package bench

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// onlyFlag adds --only, which selects parts of a benchmark.
func onlyFlag(cmd *cobra.Command, only *[]string, parts []string) {
	cmd.Flags().StringSliceVar(only, "only", nil, "the parts to run, of "+strings.Join(parts, ", "))
}

// checkOnly refuses names that are of no part.
func checkOnly(only, parts []string) error {
	for _, part := range only {
		if !slices.Contains(parts, part) {
			return cli.Usagef("--only %s: expected some of %s", part, strings.Join(parts, ", "))
		}
	}
	return nil
}
