package adopt

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

func finishCommand(a *cli.App) *cobra.Command {
	var (
		keep, lockTimeout time.Duration
		parallel          int
		yes               bool
	)
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Ends an adoption, and later drops the old tables",
		Long: `Gate 3: when all shards have tables of their own, it ends the mirrors to the old tables, which move to the schema
kiloshard_adopt_old. There is no way back from then on, so it asks first. A run that is --keep-for later asks again, and drops
the old tables. What still depends on one keeps it, and is named. Without a terminal it needs --yes. It can be run again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if parallel < 1 || keep < 0 || lockTimeout <= 0 {
				return cli.Usagef("--parallel %d, --keep-for %s, --lock-timeout %s: expected 1 or more, 0 or more, and more than 0", parallel, keep, lockTimeout)
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			a.Audit(cmd.Context(), m.Hosts(), nil)
			if err := a.Confirm(yes, "Nothing will be mirrored to the old tables any more, and kiloshard adopt back will be refused."); err != nil {
				return err
			}
			result, err := rows.Finish(cmd.Context(), rows.Config{
				Map: m, KeepFor: keep, LockTimeout: lockTimeout, Parallel: parallel, Report: reporting(a),
				Drop: func(tables []string) error {
					return a.Confirm(yes, fmt.Sprintf("These old tables will be dropped: %s.", strings.Join(tables, ", ")))
				},
			})
			if err != nil {
				return refused(err)
			}
			return a.Print(result, func() {
				if len(result.Dropped) > 0 {
					a.Say("Dropped: %s. The adoption is finished.", strings.Join(result.Dropped, ", "))
					return
				}
				a.Say("Nothing is mirrored to the old tables any more. They are in schema %s: run this again after %s to drop them.", rows.KeptIn, cli.Stamp(result.Until))
			})
		},
	}
	cmd.Flags().DurationVar(&keep, "keep-for", 7*24*time.Hour, "how long the old tables are kept")
	cmd.Flags().DurationVar(&lockTimeout, "lock-timeout", time.Second, "how long a try waits for the locks of a shard, and clients behind it")
	cmd.Flags().IntVar(&parallel, "parallel", cli.DefaultParallel, "shards at a time")
	cli.YesFlag(cmd, &yes)
	return cmd
}
