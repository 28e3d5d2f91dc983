package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	burst       = 1000
	burstRounds = 33
)

// compareBursts makes bursts of IDs on idle shards, one after the other. A burst ends before it reaches the format's
// ceiling, which is the same for all ways.
func compareBursts(ctx context.Context, host shards.Host) (BurstFigure, error) {
	conn, err := server.Connect(ctx, host)
	if err != nil {
		return BurstFigure{}, err
	}
	defer server.Close(conn)
	var set idSet
	bursts := []func(schema string) error{
		func(schema string) error {
			for range burst {
				if err := set.collect(conn.Query(ctx, "SELECT array["+schema+".next_id()]")); err != nil {
					return err
				}
			}
			return nil
		},
		func(schema string) error { return set.collect(conn.Query(ctx, arrayOf(schema+".next_id()", burst))) },
		func(schema string) error {
			return set.collect(conn.Query(ctx, "SELECT array(SELECT "+schema+".next_ids($1))", burst))
		},
	}
	micros := make([][]float64, len(bursts))
	if err := harness.Turns(burstRounds, len(bursts), func(round, i int) error {
		if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.02)"); err != nil { // so that the shard is idle
			return err
		}
		start := time.Now()
		err := bursts[i](fmt.Sprintf("shard_%05d", 6+round%10))
		if round > 10 { // all statements are prepared
			micros[i] = append(micros[i], time.Since(start).Seconds()*1e6/burst)
		}
		return err
	}); err != nil {
		return BurstFigure{}, err
	}
	if n := set.duplicates(); n > 0 {
		return BurstFigure{}, fmt.Errorf("bench: %d duplicates in bursts of IDs", n)
	}
	return BurstFigure{
		IDs: burst, Singly: stats.Median(micros[0]), Calls: stats.Median(micros[1]), Many: stats.Median(micros[2]),
		VsSingly: stats.MedianRatio(micros[2], micros[0]), VsCalls: stats.MedianRatio(micros[2], micros[1]),
		Milliseconds: stats.Median(micros[2]) * burst / 1000,
	}, nil
}
