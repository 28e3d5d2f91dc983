package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	onOneShard = "one shard"

	// routeDelay is that of the network, each way.
	routeDelay = time.Millisecond

	// slowEvery is which call is a slow one in the part slow.
	slowEvery = 500
)

func onAllShards(m *shards.Map) string { return fmt.Sprintf("%d shards", m.Len()) }

// withSides runs fn with the sides over few shards of one host, which far leads to; a nil one is none.
func (b *routeBench) withSides(ctx context.Context, delay time.Duration, fn func(m *shards.Map, s *routeSides) error) error {
	m, err := b.newCluster(ctx, routeShards, 1)
	if err != nil {
		return err
	}
	if delay > 0 {
		far, err := openNetwork(m.Hosts(), delay)
		if err != nil {
			return err
		}
		defer far.close()
		if m, err = far.through(m); err != nil {
			return err
		}
	}
	s, err := openSides(ctx, m)
	if err != nil {
		return err
	}
	defer s.close()
	return fn(m, s)
}

// compareSides lets the sides take turns with a statement.
func (b *routeBench) compareSides(
	ctx context.Context, m *shards.Map, s *routeSides, st statement, name string, goroutines int, metrics ...string,
) error {
	b.progress("%s, goroutines: %d", name, goroutines)
	plain, one, spread := s.calls(st)
	laps, err := b.compare(ctx, goroutines, plain, one, spread)
	if err != nil {
		return err
	}
	b.addLaps(name+", "+onOneShard, goroutines, laps[1], laps[0], metrics...)
	b.addLaps(name+", "+onAllShards(m), goroutines, laps[2], laps[0], metrics...)
	return nil
}

// measureLone has one goroutine, on one shard.
func measureLone(ctx context.Context, b *routeBench) error {
	return b.withSides(ctx, 0, func(_ *shards.Map, s *routeSides) error {
		for _, kind := range []struct {
			name string
			st   statement
		}{{"select", selects}, {"insert", inserts}} {
			b.progress("%s", kind.name)
			plain, one, _ := s.calls(kind.st)
			laps, err := b.compare(ctx, 1, plain, one)
			if err != nil {
				return err
			}
			b.addLaps(kind.name+", "+onOneShard, 1, laps[1], laps[0], perSecond, p50, mean)
		}
		return nil
	})
}

// measureMany has many goroutines on few connections.
func measureMany(ctx context.Context, b *routeBench) error {
	return b.withSides(ctx, 0, func(m *shards.Map, s *routeSides) error {
		for _, goroutines := range b.cfg.Goroutines {
			if err := b.compareSides(ctx, m, s, selects, "select", goroutines, perSecond, p50, p99, p999); err != nil {
				return err
			}
		}
		return nil
	})
}

// measureDelay does the same over a slower network.
func measureDelay(ctx context.Context, b *routeBench) error {
	return b.withSides(ctx, routeDelay, func(m *shards.Map, s *routeSides) error {
		return b.compareSides(ctx, m, s, selects, "select", 256, perSecond, p50, p99, p999)
	})
}

// measureSlow has a few slow calls among the others, which are those that count.
func measureSlow(ctx context.Context, b *routeBench) error {
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
	return b.withSides(ctx, 0, func(m *shards.Map, s *routeSides) error {
		return b.compareSides(ctx, m, s, mixed, "select beside slow calls", 64, p50, p99, p999, perSecond)
	})
}

// measureInserts has goroutines whose every call waits for the disk.
func measureInserts(ctx context.Context, b *routeBench) error {
	return b.withSides(ctx, 0, func(m *shards.Map, s *routeSides) error {
		const goroutines = 64
		return b.compareSides(ctx, m, s, inserts, "insert", goroutines, perSecond, p50, p99)
	})
}
