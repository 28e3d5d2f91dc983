package routes

import (
	"context"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/stats"
)

// comparison is sides that take turns, and the rows that they give the report.
type comparison struct {
	goroutines int    // whose calls count
	besides    int    // more goroutines, the last ones
	sides      []call // pgxpool is the first as a rule
	rows       []row
	metrics    []string
}

// row compares two sides.
type row struct {
	what        string
	ours, plain int // indexes of sides
}

// compare has the sides take turns, after half a turn each to warm up, and adds the rows.
func (s *stage) compare(ctx context.Context, c comparison) error {
	laps, err := s.takeTurns(ctx, c.goroutines+c.besides, c.sides)
	if err != nil {
		return err
	}
	for _, r := range c.rows {
		s.addLaps(r.what, c.goroutines, laps[r.ours], laps[r.plain], c.metrics)
	}
	return nil
}

// takeTurns returns the laps of sides that take turns, by side and round.
func (s *stage) takeTurns(ctx context.Context, goroutines int, sides []call) ([][]lap, error) {
	for _, side := range sides {
		if _, err := takeLap(ctx, goroutines, s.cfg.Turn/2, side); err != nil {
			return nil, err
		}
	}
	laps := make([][]lap, len(sides))
	err := harness.Turns(s.cfg.Rounds, len(sides), func(_, i int) error {
		l, err := takeLap(ctx, goroutines, s.cfg.Turn, sides[i])
		laps[i] = append(laps[i], l)
		return err
	})
	return laps, err
}

// addLaps adds a figure for each of the metrics.
func (s *stage) addLaps(what string, goroutines int, ours, plain []lap, metrics []string) {
	for _, metric := range metrics {
		f := Figure{Part: s.part, What: what, Goroutines: goroutines, Metric: metric}
		s.report.add(f, values(ours, metric), values(plain, metric))
	}
}

// add adds a figure that was taken once. plain is nil if there is nothing to compare with.
func (s *stage) add(what string, goroutines int, metric string, ours float64, plain ...float64) {
	s.report.add(Figure{Part: s.part, What: what, Goroutines: goroutines, Metric: metric}, []float64{ours}, plain)
}

// best returns the index of the side with the most calls per second.
func best(sides [][]lap) (best int) {
	for i, laps := range sides {
		if stats.Median(values(laps, perSecond)) > stats.Median(values(sides[best], perSecond)) {
			best = i
		}
	}
	return best
}
