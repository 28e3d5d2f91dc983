package cluster

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/moves"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// verifyResult is the JSON output of kiloshard verify.
type verifyResult struct {
	ShardCount  int                `json:"shard_count"`
	HostCount   int                `json:"host_count"`
	Differences []verifyDifference `json:"differences"`
	Moving      shards.Set         `json:"moving"` // whose moves are under way
}

// VerifyCommand is kiloshard verify.
func VerifyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compares every shard on every host with the map and with each other; names each difference",
		Long: `Compares every shard on every host with the map and names each difference: shards that are missing, misplaced
or on two hosts, functions with another shard number or epoch, sequences with a cache or a wrong maximum,
columns whose default calls another shard's next_id or draws from such a sequence, stray schemas. Then it
compares the shards at each version with each other, and reports each kind of difference once. A move under
way is not a difference, unless it stopped at the fence, where no host serves the shard. It changes nothing.
Exit code 1 when there is a difference.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			differences, err := provision.Verify(cmd.Context(), m)
			if err != nil {
				return err
			}
			result := verifyResult{ShardCount: m.Len(), HostCount: len(m.Hosts()), Differences: []verifyDifference{}}
			for _, d := range differences {
				result.Differences = append(result.Differences, verifyDifference{Difference: d})
			}
			structures, err := structureDifferences(cmd.Context(), m)
			var identity *connect.IdentityError
			if err != nil && !errors.As(err, &identity) { // which is a difference already
				return err
			}
			result.Differences = append(result.Differences, structures...)
			var moving []shards.Number
			for _, v := range moves.UnderWay(cmd.Context(), m) {
				moving = append(moving, v.Shard)
			}
			result.Moving = shards.SetOf(moving...)
			err = a.Print(result, func() {
				if len(moving) > 0 {
					a.Say("%s under way, of shards %s: see kiloshard move status", cli.Count(len(moving), "move"), result.Moving)
				}
				if len(result.Differences) == 0 {
					a.Say("%s on %s: all as the map says", cli.Count(m.Len(), "shard"), cli.Count(len(m.Hosts()), "host"))
					return
				}
				printDifferences(a, m, result.Differences)
				a.Say("%s", cli.Count(len(result.Differences), "difference"))
			})
			if len(result.Differences) > 0 {
				err = errors.Join(err, cli.ErrSilent)
			}
			return err
		},
	}
}
