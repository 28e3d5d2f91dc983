package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// LeaseFigure is how fast a lease returns IDs from blocks in memory, on one core: the median of the rounds.
type LeaseFigure struct {
	NextPerSecond    float64 `json:"next_per_second"`     // one at a time
	NextIDsPerSecond float64 `json:"next_ids_per_second"` // a hundred at a time
}

const handOutRounds = 5

// handOutIDs returns how many IDs a round hands out: 4 million in a run of the default length, fewer in a shorter one.
func handOutIDs(length time.Duration) int {
	return 100 * max(100, int(40_000*min(1, length.Seconds()/defaultIDsDuration.Seconds())))
}

// handOut measures with GOMAXPROCS 1, including the creation of the blocks.
func handOut(ctx context.Context, count int) (LeaseFigure, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: &countUp{}, Block: 1 << 16, MaxBlock: 1 << 16})
	defer lease.Close()
	var one, hundred []float64
	for range handOutRounds {
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
