package maps

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// completeVersion offers the versions of the map, the newest first.
func completeVersion(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if _, ok := a.BeforeCompletion(cmd); !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		_ = onMap(a, cmd, func(ctx context.Context, s *session) error { // what cannot be read is not offered
			entries, err := s.versions(ctx)
			for _, e := range entries {
				found = append(found, cobra.CompletionWithDesc(strconv.Itoa(e.Map.Version()), cli.VersionOf(e).String()))
			}
			return err
		})
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
