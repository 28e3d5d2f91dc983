package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// idsPerStatement returns how many IDs one statement makes: enough to make the round trip negligible for a single session,
// and few enough for many sessions to end their turns in time.
func idsPerStatement(sessions int) int { return max(1000, 10_000/sessions) }

// compareWays measures all ways in turns with one number of sessions.
func compareWays(ctx context.Context, host shards.Host, g *generators, sessions int, turn time.Duration) ([]Figure, error) {
	conns, err := server.Open(ctx, host, sessions)
	if err != nil {
		return nil, err
	}
	defer server.Close(conns...)

	all := ways()
	sums := make([]output, len(all))
	perMs := make([][]float64, len(all)) // by way and round
	if err := harness.Turns(rounds, len(all), func(_, i int) error {
		o, err := takeTurn(ctx, g, conns, all[i], turn)
		if err != nil {
			return fmt.Errorf("%s with %d sessions: %w", all[i].name, sessions, err)
		}
		sums[i].add(o)
		perMs[i] = append(perMs[i], o.perMs())
		return nil
	}); err != nil {
		return nil, err
	}

	figures := make([]Figure, len(all))
	for i, w := range all {
		o := &sums[i]
		count := float64(o.ids.len())
		figures[i] = Figure{
			Function: w.name, Sessions: sessions, IDs: o.ids.len(),
			Microseconds: float64(sessions) * float64(o.elapsed.Microseconds()) / count,
			PerMs:        o.perMs(), OfCeiling: o.perMs() / float64(server.Layout.Slots()),
			WALBytes:   float64(o.wal) / count,
			Duplicates: o.ids.duplicates(), VsPublished: stats.MedianRatio(perMs[i], perMs[0]), VsOneShard: stats.MedianRatio(perMs[i], perMs[1]),
		}
	}
	return figures, nil
}

// output is what sessions made in one turn.
type output struct {
	ids     idSet
	elapsed time.Duration
	wal     int64 // bytes of WAL written
}

func (o *output) add(other output) {
	o.ids.add(other.ids)
	o.elapsed += other.elapsed
	o.wal += other.wal
}

func (o *output) perMs() float64 {
	return float64(o.ids.len()) / (float64(o.elapsed) / float64(time.Millisecond))
}

// takeTurn makes IDs in all sessions for one turn.
func takeTurn(ctx context.Context, g *generators, conns []*pgx.Conn, w way, turn time.Duration) (output, error) {
	draws := make([]draw, len(conns))
	for i, conn := range conns {
		draws[i] = w.open(g, conn, i)
	}
	before, err := walPosition(ctx, conns[0])
	if err != nil {
		return output{}, err
	}
	sets := make([]idSet, len(conns))
	start := time.Now()
	err = harness.Together(len(conns), func(i int) (err error) {
		for time.Since(start) < turn && err == nil {
			err = draws[i](ctx, idsPerStatement(len(conns)), &sets[i])
		}
		return err
	})
	o := output{elapsed: time.Since(start)}
	if err != nil {
		return o, err
	}
	after, err := walPosition(ctx, conns[0])
	o.wal = after - before
	for _, set := range sets {
		o.ids.add(set)
	}
	return o, err
}
