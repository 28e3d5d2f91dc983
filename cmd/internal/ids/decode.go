package ids

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

func decodeCommand(a *cli.App) *cobra.Command {
	var flags schemeFlags
	cmd := &cobra.Command{
		Use:   "decode ID...",
		Short: "Prints when and where an ID was made",
		Long: `Prints when and where an ID was made: the bits of one ID, or a table of several.

--layout reads IDs of other systems, by a published name or by their bits, with --epoch. It needs no config.`,
		Example: `  kiloshard id decode 43124157038213001
  kiloshard id decode --layout pinterest 241294492511762325
  kiloshard id decode --layout time:41,shard:13,sequence:10 --epoch 2011-01-01 11637205501278089`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := schemeOf(cmd.Context(), a, flags)
			if err != nil {
				return err
			}
			ids := make([]explained, len(args))
			for i, arg := range args {
				bits, err := s.parse(arg)
				if err != nil {
					return err
				}
				ids[i] = s.explain(bits)
			}
			if len(ids) == 1 {
				return printID(a, ids[0], time.Now())
			}
			return printIDs(a, ids)
		},
	}
	cli.TakesNegative(cmd)
	flags.add(cmd)
	return cmd
}

// parse reads an ID. A foreign one may be written as a number without a sign.
func (s scheme) parse(text string) (uint64, error) {
	signed, err := cli.ParseInt(text, "an ID", "ID")
	bits := uint64(signed)
	if err != nil {
		var unsignedErr error
		if bits, unsignedErr = strconv.ParseUint(text, 10, 64); s.m != nil || unsignedErr != nil {
			return 0, err
		}
	}
	if unused := s.fields()[0]; unused.name == "" && bits>>(64-unused.bits) != 0 {
		return 0, cli.Usagef("ID %q: expected 0 to %d, since layout %s has %d bits", text, uint64(1)<<(64-unused.bits)-1, s.text(), 64-unused.bits)
	}
	return bits, nil
}
