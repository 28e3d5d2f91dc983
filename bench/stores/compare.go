package stores

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/stats"
)

// comparison is what both sides of a figure do in a round.
type comparison struct {
	what    string
	calls   int
	callers int // at the same time
}

// compare has both sides make their calls in turn, and adds the figure. The calls of each side are numbered from 0 up.
func (b *bench) compare(ctx context.Context, c comparison, ours, byHand func(ctx context.Context, i int) error) error {
	b.cfg.Progress(c.what)
	sides := []func(context.Context, int) error{ours, byHand}
	var took [2][]float64
	var sent [2]float64
	err := harness.Turns(b.cfg.Rounds+1, 2, func(round, side int) error { // the first warms up connections, statements and plans
		messages := &b.counters[side].messages
		before, began := messages.Load(), time.Now()
		err := all(c.callers, c.calls, func(i int) error { return sides[side](ctx, round*c.calls+i) })
		if round > 0 {
			took[side] = append(took[side], float64(time.Since(began).Microseconds())/float64(c.calls))
			sent[side] += float64(messages.Load()-before) / float64(c.calls*b.cfg.Rounds)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.what, err)
	}
	b.report.Points = append(b.report.Points, Figure{
		What: c.what, Ours: stats.Median(took[0]), ByHand: stats.Median(took[1]), Ratio: stats.MedianRatio(took[0], took[1]),
		OurMessages: sent[0], ByHandMessages: sent[1],
	})
	return nil
}

// all makes calls, so many at the same time. Each caller stops at its first error.
func all(callers, calls int, call func(i int) error) error {
	callers = min(callers, calls)
	return harness.Together(callers, func(c int) error {
		for i := c; i < calls; i += callers {
			if err := call(i); err != nil {
				return err
			}
		}
		return nil
	})
}
