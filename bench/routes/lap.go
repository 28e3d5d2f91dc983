package routes

import (
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// The metrics of a lap.
const (
	perSecond = "calls/s"
	mean      = "mean us"
	p50       = "p50 us"
	p99       = "p99 us"
	p999      = "p99.9 us"
	longest   = "max us"
)

// call makes call number i of a worker. It reports whether its latency is ignored.
type call func(ctx context.Context, worker, i int) (ignored bool, err error)

// lap is the result of one turn.
type lap struct {
	elapsed   time.Duration
	calls     int             // all of them
	latencies []time.Duration // of those not ignored, in rising order
}

// takeLap makes calls in goroutines for the length of a turn, at least one call in each. The first error ends the lap.
func takeLap(ctx context.Context, goroutines int, length time.Duration, c call) (lap, error) {
	each := make([][]time.Duration, goroutines)
	calls := make([]int, goroutines)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for w := range goroutines {
		group.Go(func() error {
			for i := 0; i == 0 || time.Since(start) < length; i++ {
				before := time.Now()
				ignored, err := c(ctx, w, i)
				if err != nil {
					return err
				}
				calls[w]++
				if !ignored {
					each[w] = append(each[w], time.Since(before))
				}
			}
			return nil
		})
	}
	err := group.Wait()
	l := lap{elapsed: time.Since(start), latencies: slices.Concat(each...)}
	for _, n := range calls {
		l.calls += n
	}
	slices.Sort(l.latencies)
	return l, err
}

// value returns a metric. Latencies are 0 if all calls are ignored.
func (l lap) value(metric string) float64 {
	switch metric {
	case perSecond:
		return float64(l.calls) / l.elapsed.Seconds()
	case mean:
		var sum time.Duration
		for _, latency := range l.latencies {
			sum += latency
		}
		return microseconds(sum) / float64(max(1, len(l.latencies)))
	case p50:
		return l.quantile(0.5)
	case p99:
		return l.quantile(0.99)
	case p999:
		return l.quantile(0.999)
	case longest:
		return l.quantile(1)
	}
	panic("bug: no metric " + metric)
}

// quantile returns the q-quantile of the latencies, in microseconds.
func (l lap) quantile(q float64) float64 {
	if len(l.latencies) == 0 {
		return 0
	}
	return microseconds(l.latencies[max(0, int(math.Ceil(q*float64(len(l.latencies))))-1)])
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// values returns a metric of each lap.
func values(laps []lap, metric string) []float64 {
	all := make([]float64, len(laps))
	for i, l := range laps {
		all[i] = l.value(metric)
	}
	return all
}
