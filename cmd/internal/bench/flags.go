package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// onlyFlag adds --only, which selects parts of a benchmark.
func onlyFlag(cmd *cobra.Command, only *[]string, parts []string) {
	cmd.Flags().StringSliceVar(only, "only", nil, "the parts to run, of "+strings.Join(parts, ", "))
}

// checkOnly returns an error for a name that is not a part.
func checkOnly(only, parts []string) error {
	for _, part := range only {
		if !slices.Contains(parts, part) {
			return cli.Usagef("--only %s: expected some of %s", part, strings.Join(parts, ", "))
		}
	}
	return nil
}

// minimum is the least value of a flag.
type minimum struct {
	flag         string
	value, least int
}

func checkMinimums(minimums ...minimum) error {
	for _, m := range minimums {
		if m.value < m.least {
			return cli.Usagef("--%s %d: expected %d or more", m.flag, m.value, m.least)
		}
	}
	return nil
}

// checkSeconds returns an error for seconds that are not above 0, or too many.
func checkSeconds(flag string, value float64) error {
	if !(value > 0 && value <= 3600) {
		return cli.Usagef("--%s %g: expected more than 0, and 3600 at most", flag, value)
	}
	return nil
}

// progress prints what a benchmark measures next.
func progress(a *cli.App) func(string) {
	return func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }
}
