package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// rounds is the number of rounds. Each way has one turn in a round.
const rounds = 2

// bench is the state of one [Run].
type bench struct {
	cfg      Config
	template *template
	report   Report
}

// compare measures all ways in turns over one network.
func (b *bench) compare(ctx context.Context, delay time.Duration) (Table, error) {
	table := Table{Delay: delay.Seconds() * 1000}
	others, hosts := otherWays(), len(b.template.controls)
	sample := min(b.cfg.Sample, b.cfg.Shards/hosts/len(others))
	var far *network.Network
	var err error
	if delay > 0 {
		sample = max(1, sample/2)
		if far, err = network.Open(b.template.m.Hosts(), delay); err != nil {
			return table, err
		}
		defer far.Close()
	}
	if table.RoundTrip, err = b.roundTrip(ctx, far); err != nil {
		return table, err
	}
	perShard := map[string][]float64{} // milliseconds, by way and round
	var again, status []float64        // seconds, by round
	err = harness.Turns(rounds, 2, func(round, side int) error {
		if side == 0 {
			b.cfg.Progress(fmt.Sprintf("migrate up, round %d of %d, %s delay", round+1, rounds, delay))
			return b.turn(ctx, far, b.cfg.Shards, func(near, m *shards.Map) error {
				took, err := b.timeUp(ctx, near, m)
				perShard[wayUp] = append(perShard[wayUp], took[0]*1000/float64(b.cfg.Shards))
				again, status = append(again, took[1]), append(status, took[2])
				return err
			})
		}
		b.cfg.Progress(fmt.Sprintf("the other ways, round %d of %d, %s delay", round+1, rounds, delay))
		return b.turn(ctx, far, len(others)*sample*hosts, func(_, m *shards.Map) error {
			for k := range others {
				way := others[(k+round*len(others)/rounds)%len(others)]
				set := partOfEach(m, k*sample, sample)
				seconds, err := harness.Time(func() error { return way.run(ctx, m, set, b.cfg.Workers) })
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				perShard[way.name] = append(perShard[way.name], seconds*1000/float64(set.Len()))
			}
			return nil
		})
	})
	if err != nil {
		return table, err
	}
	table.Again, table.Status = stats.Median(again), stats.Median(status)
	table.Ways = b.figures(perShard, sample*hosts)
	return table, nil
}

// figures returns the figures of all ways from their milliseconds per shard, by way and round.
func (b *bench) figures(perShard map[string][]float64, measured int) []Figure {
	var all []Figure
	for _, way := range []string{wayLoop, wayLoops, wayUp, wayGoose, wayTern} {
		own := perShard[way]
		figure := Figure{
			Way: way, Measured: measured, PerShard: stats.Median(own), Seconds: stats.Median(own) * float64(b.cfg.Shards) / 1000,
			VsTern: stats.MedianRatio(perShard[wayTern], own), VsFloor: stats.MedianRatio(own, perShard[wayLoop]),
		}
		if way == wayUp {
			figure.Measured = b.cfg.Shards
		}
		all = append(all, figure)
	}
	return all
}

// turn clones the databases, calls fn with the map of the clones and with the same map over the network, and then checks
// the number of migrated shards.
func (b *bench) turn(ctx context.Context, far *network.Network, migrated int, fn func(near, m *shards.Map) error) (err error) {
	near, drop, err := b.template.clone(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	m, err := far.Through(near)
	if err != nil {
		return err
	}
	if err := fn(near, m); err != nil {
		return err
	}
	return checkVersions(ctx, near, migrated)
}

// timeUp returns the durations of Up, of a second Up with nothing to do, and of Status, in seconds.
func (b *bench) timeUp(ctx context.Context, near, m *shards.Map) (took [3]float64, err error) {
	view, err := openView(ctx, near)
	if err != nil {
		return took, err
	}
	defer view.close()
	cfg := migrate.Config{Map: m, Files: migration, PerHost: b.cfg.Workers}
	first := cfg
	first.Progress = view
	resetPeak()
	for i, call := range []func() error{
		func() error { _, err := migrate.Up(ctx, first); return err },
		func() error { _, err := migrate.Up(ctx, cfg); return err },
		func() error { _, err := migrate.Status(ctx, cfg); return err },
	} {
		if took[i], err = harness.Time(call); err != nil {
			return took, err
		}
		if i == 0 {
			b.report.PeakRSS = max(b.report.PeakRSS, peakRSS())
			b.report.SessionBytes = max(b.report.SessionBytes, view.largest)
		}
	}
	return took, nil
}

// roundTrip returns how long an empty statement takes, in milliseconds.
func (b *bench) roundTrip(ctx context.Context, far *network.Network) (float64, error) {
	m, err := far.Through(b.template.m)
	if err != nil {
		return 0, err
	}
	conn, err := server.Connect(ctx, m.Hosts()[0])
	if err != nil {
		return 0, err
	}
	defer server.Close(conn)
	var took []float64
	for range 100 {
		seconds, err := harness.Time(func() error { _, err := conn.PgConn().Exec(ctx, "").ReadAll(); return err })
		if err != nil {
			return 0, err
		}
		took = append(took, seconds*1000)
	}
	return stats.Median(took), nil
}
