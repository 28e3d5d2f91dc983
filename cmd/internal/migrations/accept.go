package migrations

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// acceptResult is the JSON output of kiloshard migrate accept.
type acceptResult struct {
	Accepted []migrate.ChangedFile `json:"accepted"`
}

func acceptCommand(a *cli.App) *cobra.Command {
	var narrowed, by string
	cmd := &cobra.Command{
		Use:   "accept VERSION…",
		Short: "Accepts files that changed after shards ran them",
		Long: `Records in the ledger that the present files of these versions are what the shards have run: after a file was
renamed, or changed in a way that does not matter to them, such as in a comment. It runs nothing, and records
who accepted it and when.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			versions := make([]int32, len(args))
			for i, arg := range args {
				n, err := strconv.ParseInt(arg, 10, 32)
				if err != nil || n < 1 {
					return cli.Usagef("version %q: expected a number from 1 on", arg)
				}
				versions[i] = int32(n)
			}
			cfg, err := readConfig(cmd.Context(), a, narrowed)
			if err != nil {
				return err
			}
			cfg.By = by
			accepted, err := migrate.Accept(cmd.Context(), cfg, versions...)
			if host := (*shards.HostError)(nil); err != nil && !errors.As(err, &host) {
				return cli.Usage(err) // about the files or the versions: no host was asked
			}
			return errors.Join(printAccepted(a, accepted, err), err)
		},
	}
	cmd.ValidArgsFunction = a.CompleteVersion
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	cmd.Flags().StringVar(&by, "by", "", "who accepts it, for the ledger (default user@machine)")
	return cmd
}

// printAccepted prints the files that were accepted. err is the error of the rest.
func printAccepted(a *cli.App, accepted []migrate.ChangedFile, err error) error {
	return a.Print(acceptResult{listOf(accepted)}, func() {
		for _, c := range accepted {
			a.Say("%s accepted as what %s (%s) have run as %s", c.Now, cli.Count(c.Shards.Len(), "shard"), c.Shards, c.File)
		}
		if len(accepted) == 0 && err == nil {
			a.Say("nothing to accept: the ledgers know these files as they are")
		}
	})
}
