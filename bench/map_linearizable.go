package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/bench/linear"
)

// measureLinearizable runs many clients that load and swap while the store is killed, and checks their histories.
func measureLinearizable(ctx context.Context, b *mapBench, store MapStore) error {
	stores, closeAll, err := openMany(ctx, store, b.cfg.Clients)
	if err != nil {
		return err
	}
	report, err := linear.Run(ctx, linear.Config{
		Stores: stores, Cluster: store.Config.Cluster, Clients: b.cfg.Clients, Operations: b.cfg.Operations, Kills: b.kills(store),
		Kill: func(ctx context.Context) error {
			if err := store.Kill(ctx); err != nil {
				return err
			}
			return store.Restart(ctx)
		},
	})
	if err := errors.Join(err, closeAll()); err != nil {
		return err
	}
	what := fmt.Sprintf("%d clients at once", b.cfg.Clients)
	b.add(what, "operations", float64(report.Operations))
	b.add(what, "versions made", float64(report.Versions))
	b.add(what, "conflicts", float64(report.Conflicts))
	b.add(what, "unknown outcomes", float64(report.Unknown))
	b.add(what, "unanswered, besides", float64(report.Refused))
	b.add(what, "kills", float64(report.Kills))
	b.add(what, "seconds", report.Seconds)
	b.add(what, "seconds of checking", report.CheckSeconds)
	b.report.Rows = append(b.report.Rows, MapFigure{Part: b.part, Store: b.store, What: what, Metric: "verdict", Text: report.Verdict})
	if !report.OK() {
		b.fail("seed %d: %s", report.Seed, report)
	}
	for _, wrong := range report.Wrong {
		b.fail("%s", wrong)
	}
	return nil
}
