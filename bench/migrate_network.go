package bench

import (
	"context"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
)

// roundTrip returns how long an empty statement takes, in milliseconds.
func (b *migrateBench) roundTrip(ctx context.Context, far *network.Network) (float64, error) {
	m, err := far.Through(b.base)
	if err != nil {
		return 0, err
	}
	conns, err := server.Open(ctx, m.Hosts()[0], 1)
	if err != nil {
		return 0, err
	}
	defer server.Close(conns)
	var took []float64
	for range 100 {
		seconds, err := timed(func() error { _, err := conns[0].PgConn().Exec(ctx, "").ReadAll(); return err })
		if err != nil {
			return 0, err
		}
		took = append(took, seconds*1000)
	}
	return stats.Median(took), nil
}
