package adopt

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

// backResult is the JSON output of kiloshard adopt back.
type backResult struct {
	Dropped shards.Set `json:"dropped"` // shards whose views are gone
	Seconds float64    `json:"seconds"`
}

func backCommand(a *cli.App) *cobra.Command {
	var parallel int
	cmd := &cobra.Command{
		Use:   "back",
		Short: "Takes an adoption back: the old tables are as they were",
		Long: `Drops the views of all shards, the triggers that record writes, and the ledger of the adoption. The old tables
and their rows stay, also those written by way of shards; the empty schemas of shards stay, too. Services that use the
router must use the old tables again before: a statement on a view that is gone is an error. After an interrupt, run it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if parallel < 1 {
				return cli.Usagef("--parallel %d: expected 1 or more", parallel)
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			a.Audit(cmd.Context(), m.Hosts(), nil)
			start := time.Now()
			dropped, err := back(cmd.Context(), a, m, parallel)
			switch {
			case errors.Is(err, ledger.ErrNone):
				return a.Print(backResult{}, func() { a.Say("Nobody adopts this database: there is nothing to take back.") })
			case err != nil:
				return err
			}
			took := time.Since(start)
			return a.Print(backResult{dropped, took.Seconds()}, func() {
				a.Say("The views of %s are gone, in %s. The old tables are as they were.", cli.Count(dropped.Len(), "shard"), took.Round(time.Millisecond))
			})
		},
	}
	cmd.Flags().IntVar(&parallel, "parallel", cli.DefaultParallel, "shards at a time")
	return cmd
}

// back goes back to gate 1, if the adoption is beyond, and then takes that back.
func back(ctx context.Context, a *cli.App, m *shards.Map, parallel int) (shards.Set, error) {
	if err := backToViews(ctx, a, m, parallel); err != nil {
		return shards.Set{}, err
	}
	return views.Back(ctx, views.BackConfig{Map: m, PerHost: parallel, Progress: a.Progress("adopt back")})
}
