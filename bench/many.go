package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// ManyFigure is the cost of a burst of IDs in each way, in microseconds per ID: the median of the rounds.
type ManyFigure struct {
	IDs          int     `json:"ids"`           // in a burst
	Singly       float64 `json:"one_by_one"`    // as many statements SELECT next_id()
	Calls        float64 `json:"one_statement"` // as many calls of next_id() in one statement
	Many         float64 `json:"next_ids"`      // one call of next_ids(n)
	VsSingly     float64 `json:"ratio_to_one_by_one"`
	VsCalls      float64 `json:"ratio_to_one_statement"` // of time: below 1 is faster
	Milliseconds float64 `json:"next_ids_milliseconds"`  // for the burst
}

const (
	burst       = 1000
	burstRounds = 33
)

// compareMany makes bursts of IDs on idle shards, one after the other. A burst ends before it reaches the format's ceiling,
// which is the same for all ways.
func compareMany(ctx context.Context, host shards.Host) (ManyFigure, error) {
	conns, err := server.Open(ctx, host, 1)
	if err != nil {
		return ManyFigure{}, err
	}
	defer server.Close(conns)
	conn := conns[0]
	var set idSet
	ways := []func(schema string) error{
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
	micros := make([][]float64, len(ways))
	for round := range burstRounds {
		for k := range ways {
			i := (k + round) % len(ways)
			took, err := timedBurst(ctx, conn, fmt.Sprintf("shard_%05d", 6+round%10), ways[i])
			if err != nil {
				return ManyFigure{}, err
			}
			if round > 10 { // all statements are prepared
				micros[i] = append(micros[i], took.Seconds()*1e6/burst)
			}
		}
	}
	if n := set.duplicates(); n > 0 {
		return ManyFigure{}, fmt.Errorf("bench: %d duplicates in bursts of IDs", n)
	}
	return ManyFigure{
		IDs: burst, Singly: stats.Median(micros[0]), Calls: stats.Median(micros[1]), Many: stats.Median(micros[2]),
		VsSingly: stats.MedianRatio(micros[2], micros[0]), VsCalls: stats.MedianRatio(micros[2], micros[1]),
		Milliseconds: stats.Median(micros[2]) * burst / 1000,
	}, nil
}

// timedBurst measures a burst after the shard has been idle.
func timedBurst(ctx context.Context, conn *pgx.Conn, schema string, way func(schema string) error) (time.Duration, error) {
	if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.02)"); err != nil {
		return 0, err
	}
	start := time.Now()
	err := way(schema)
	return time.Since(start), err
}
