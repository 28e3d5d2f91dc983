package maps

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// mapDiff is the JSON output of kiloshard map diff.
type mapDiff struct {
	From    cli.MapVersion `json:"from"`
	To      cli.MapVersion `json:"to"`
	Changes []mapChange    `json:"changes"`
}

func diffCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [A [B]]",
		Short: "Prints how two versions of the map differ",
		Long: `Prints how version B of the map differs from version A: fields, hosts, and shards that changed their host. B
defaults to the present version, and A to the one before B.`,
		Args: cobra.MaximumNArgs(2), ValidArgsFunction: completeVersion(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			numbers := make([]int, len(args))
			for i, arg := range args {
				var err error
				if numbers[i], err = parseVersion(arg); err != nil {
					return err
				}
			}
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				from, to, err := s.pair(ctx, numbers)
				if err != nil {
					return err
				}
				diff := mapDiff{cli.VersionOf(from), cli.VersionOf(to), changesBetween(from.Map, to.Map)}
				return a.Print(diff, func() {
					a.Say("%s\n%s", diff.From, diff.To)
					sayChanges(a, diff.Changes)
				})
			})
		},
	}
}

// pair returns the versions that kiloshard map diff compares.
func (s *session) pair(ctx context.Context, numbers []int) (from, to mapstore.Entry, err error) {
	if len(numbers) == 2 {
		if from, err = s.version(ctx, numbers[0]); err != nil {
			return from, to, err
		}
		to, err = s.version(ctx, numbers[1])
		return from, to, err
	}
	for entry, err := range s.History(ctx) {
		switch {
		case err != nil:
			return from, to, err
		case to.Map == nil:
			to = entry
			if len(numbers) == 1 {
				from, err = s.version(ctx, numbers[0])
				return from, to, err
			}
		default:
			return entry, to, nil
		}
	}
	if to.Map == nil {
		return from, to, mapstore.ErrNoMap
	}
	return from, to, cli.Usagef("version %d is the only one: expected two to compare", to.Map.Version())
}

func sayChanges(a *cli.App, changes []mapChange) {
	for _, c := range changes {
		a.Say("  %s", c)
	}
	if len(changes) == 0 {
		a.Say("  no difference")
	}
}
