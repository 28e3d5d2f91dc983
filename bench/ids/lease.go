package ids

import (
	"context"
	"runtime"
	"time"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

const leaseRounds = 5

// leaseIDs returns how many IDs a lease returns in a round: 4 million in a run of the default length, fewer in a
// shorter one.
func leaseIDs(length time.Duration) int {
	return 100 * max(100, int(40_000*min(1, length.Seconds()/defaultDuration.Seconds())))
}

// measureLease measures with GOMAXPROCS 1, including the creation of the blocks.
func measureLease(ctx context.Context, count int) (LeaseFigure, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: &countUp{}, Block: 1 << 16, MaxBlock: 1 << 16})
	defer lease.Close()
	var one, hundred []float64
	for range leaseRounds {
		start := time.Now()
		for range count {
			if _, err := lease.Next(ctx); err != nil {
				return LeaseFigure{}, err
			}
		}
		one = append(one, float64(count)/time.Since(start).Seconds())
		start = time.Now()
		for range count / 100 {
			if _, err := lease.NextIDs(ctx, 100); err != nil {
				return LeaseFigure{}, err
			}
		}
		hundred = append(hundred, float64(count)/time.Since(start).Seconds())
	}
	return LeaseFigure{NextPerSecond: stats.Median(one), NextIDsPerSecond: stats.Median(hundred)}, nil
}

// countUp returns 1, 2, 3 and so on.
type countUp struct{ last shards.ID }

func (c *countUp) NextIDs(_ context.Context, n int) ([]shards.ID, error) {
	made := make([]shards.ID, n)
	for i := range made {
		c.last++
		made[i] = c.last
	}
	return made, nil
}
