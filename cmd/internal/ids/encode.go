package ids

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
)

func encodeCommand(a *cli.App) *cobra.Command {
	var flags schemeFlags
	var at string
	var shard int32
	var typ int
	var sequence int64
	cmd := &cobra.Command{
		Use:   "encode --time T --shard S --sequence N",
		Short: "Builds an ID from its parts",
		Long: `Builds an ID from its parts. A layout without a time takes no --time. With --layout, --shard and --type are
the fields at their positions: worker and process of discord, the machine of twitter.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := schemeOf(cmd.Context(), a, flags)
			if err != nil {
				return err
			}
			ms, err := s.milliseconds(at)
			if err != nil {
				return err
			}
			id, err := s.layout.Compose(shards.Parts{Milliseconds: ms, Shard: shards.Number(shard), Type: typ, Sequence: sequence})
			if err != nil {
				return err
			}
			return printIDs(a, []explained{s.explain(uint64(id))})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&at, "time", "", "when, such as 2026-03-01T12:00:00.123Z")
	cmd.Flags().Int32Var(&shard, "shard", 0, "the number of the shard")
	cmd.Flags().IntVar(&typ, "type", 0, "the type, of a layout with types")
	cmd.Flags().Int64Var(&sequence, "sequence", 0, "the slot within the millisecond; without a time, the value of the sequence")
	_ = cmd.MarkFlagRequired("shard") // fails only for a flag that is not there
	return cmd
}

// milliseconds parses the time of an ID, for a layout with a time.
func (s scheme) milliseconds(at string) (int64, error) {
	if !s.layout.HasTime() {
		if at != "" {
			return 0, cli.Usagef("--time: expected none, since IDs of layout %s hold no time", s.text())
		}
		return 0, nil
	}
	if at == "" {
		return 0, cli.Usagef("--time: expected the time of the ID, such as 2026-03-01T12:00:00.123Z")
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return 0, cli.Usagef("--time %q: expected a time such as 2026-03-01T12:00:00.123Z", at)
	}
	ms, err := s.layout.Milliseconds(t, s.epoch)
	if err != nil {
		return 0, cli.Usage(fmt.Errorf("--time: %w", err))
	}
	return ms, nil
}
