package maps

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

func rollbackCommand(a *cli.App) *cobra.Command {
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "rollback VERSION",
		Short: "Makes an older version of the map the next one",
		Long: `Stores the map of an older version as the next version: no version is taken back, and services see their number
go up. It is checked as an edit is. A shard that has moved since stays refused: kiloshard move takes it back.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := parseVersion(args[0])
			if err != nil {
				return err
			}
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				now, err := s.Load(ctx)
				if err != nil {
					return err
				}
				if err := s.isFrom(now, flags); err != nil {
					return err
				}
				then, err := s.version(ctx, version)
				if err != nil {
					return err
				}
				flags.why = cmp.Or(flags.why, fmt.Sprintf("as version %d", version))
				return change(ctx, a, s, now, then.Map.Config(), flags)
			})
		},
		ValidArgsFunction: completeVersion(a),
	}
	flags.add(cmd)
	return cmd
}
