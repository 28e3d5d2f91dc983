package routes

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	onOneShard = "one shard"

	// Delays of a network, each way.
	farDelay   = time.Millisecond
	shortDelay = 250 * time.Microsecond

	// slowEvery is how often the part slow makes a slow call: one in slowEvery.
	slowEvery = 500
)

func onAllShards(m *shards.Map) string { return fmt.Sprintf("%d shards", m.Len()) }

// withSides runs fn with the sides over few shards of one host, behind a network with a delay each way. There is a plain
// pool for each of conns.
func (b *bench) withSides(ctx context.Context, delay time.Duration, conns []int, fn func(m *shards.Map, s *sides) error) error {
	m, err := b.newCluster(ctx, fewShards, 1)
	if err != nil {
		return err
	}
	if delay > 0 {
		far, err := network.Open(m.Hosts(), delay)
		if err != nil {
			return err
		}
		defer far.Close()
		if m, err = far.Through(m); err != nil {
			return err
		}
	}
	s, err := openSides(ctx, m, conns)
	if err != nil {
		return err
	}
	defer s.close()
	return fn(m, s)
}

// compareSides measures the sides in turns with a statement.
func (b *bench) compareSides(
	ctx context.Context, m *shards.Map, s *sides, st statement, name string, goroutines int, metrics ...string,
) error {
	b.progress("%s, goroutines: %d", name, goroutines)
	plains, one, spread := s.calls(st)
	laps, err := b.compare(ctx, goroutines, append(plains, one, spread)...)
	if err != nil {
		return err
	}
	best, ours := bestOf(laps[:len(plains)]), laps[len(plains):]
	b.addLaps(name+", "+onOneShard, goroutines, ours[0], laps[best], metrics...)
	b.addLaps(name+", "+onAllShards(m), goroutines, ours[1], laps[best], metrics...)
	if len(plains) > 1 {
		b.add(name+", the best of plain", goroutines, "connections", []float64{float64(s.conns[best])}, nil)
	}
	return nil
}

// bestOf returns the index of the side with the most calls per second.
func bestOf(sides [][]lap) (best int) {
	for i, laps := range sides {
		if stats.Median(values(laps, perSecond)) > stats.Median(values(sides[best], perSecond)) {
			best = i
		}
	}
	return best
}

// measureLone measures one goroutine on one shard, locally and over a network.
func measureLone(ctx context.Context, b *bench) error {
	for _, far := range []struct {
		suffix string
		delay  time.Duration
	}{{"", 0}, {fmt.Sprintf(", %v a round trip", 2*shortDelay), shortDelay}} {
		err := b.withSides(ctx, far.delay, []int{connsPerHost}, func(m *shards.Map, s *sides) error {
			for _, kind := range []struct {
				name string
				st   statement
			}{{"select", selects}, {"insert", inserts}} {
				b.progress("%s%s", kind.name, far.suffix)
				plains, one, _ := s.calls(kind.st)
				laps, err := b.compare(ctx, 1, plains[0], one)
				if err != nil {
					return err
				}
				b.addLaps(kind.name+", "+onOneShard+far.suffix, 1, laps[1], laps[0], perSecond, p50, mean)
			}
			return b.measureEntry(ctx, m, s, far.suffix)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureEntry measures how much of what a lone select takes longer is the entry's.
func (b *bench) measureEntry(ctx context.Context, m *shards.Map, s *sides, suffix string) error {
	entered, err := openEntered(ctx, s.one, m)
	if err != nil {
		return err
	}
	defer entered.close()
	b.progress("entry%s", suffix)
	plains, one, _ := s.calls(selects)
	laps, err := b.compare(ctx, 1, plains[0], one, entered.selects)
	if err != nil {
		return err
	}
	b.addLaps("select, nothing but an entry"+suffix, 1, laps[2], laps[0], perSecond, mean)
	b.addLaps("select, beside that with nothing but an entry"+suffix, 1, laps[1], laps[2], perSecond, mean)
	return nil
}

// measureMany measures many goroutines on few connections.
func measureMany(ctx context.Context, b *bench) error {
	return b.withSides(ctx, 0, plainConns, func(m *shards.Map, s *sides) error {
		for _, goroutines := range b.cfg.Goroutines {
			if err := b.compareSides(ctx, m, s, selects, "select", goroutines, perSecond, p50, p99, p999); err != nil {
				return err
			}
		}
		return nil
	})
}

// measureDelay measures the same over a slower network.
func measureDelay(ctx context.Context, b *bench) error {
	return b.withSides(ctx, farDelay, []int{connsPerHost}, func(m *shards.Map, s *sides) error {
		return b.compareSides(ctx, m, s, selects, "select", 256, perSecond, p50, p99, p999)
	})
}

// measureSlow mixes a few slow calls with fast ones, and measures the fast ones.
func measureSlow(ctx context.Context, b *bench) error {
	mixed := func(prefix string) func(context.Context, querier, int64, int, int) (bool, error) {
		quick := selects(prefix)
		return func(ctx context.Context, on querier, owner int64, worker, i int) (bool, error) {
			if (61*worker+i)%slowEvery == slowEvery-1 { // not all goroutines at once
				_, err := on.Exec(ctx, "select pg_sleep(0.05)")
				return true, err
			}
			return quick(ctx, on, owner, worker, i)
		}
	}
	return b.withSides(ctx, 0, []int{connsPerHost}, func(m *shards.Map, s *sides) error {
		return b.compareSides(ctx, m, s, mixed, "select beside slow calls", 64, p50, p99, p999, perSecond)
	})
}

// measureInserts measures goroutines whose calls all wait for the disk.
func measureInserts(ctx context.Context, b *bench) error {
	return b.withSides(ctx, 0, []int{connsPerHost}, func(m *shards.Map, s *sides) error {
		const goroutines = 64
		return b.compareSides(ctx, m, s, inserts, "insert", goroutines, perSecond, p50, p99)
	})
}
