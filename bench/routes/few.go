package routes

import (
	"context"
	"fmt"
	"time"
)

// few is a part that runs a statement on few shards of one host: through pgxpool, through a router on one shard, and
// through a router on all of them.
type few struct {
	what       string
	statement  statement
	delay      time.Duration // of the network to the host, each way
	goroutines []int         // Defaults to Config.Goroutines
	pools      []int         // connections of pgxpools, of which the best one counts. Defaults to connsPerHost
	metrics    []string
}

func (f few) run(ctx context.Context, s *stage) error {
	if len(f.goroutines) == 0 {
		f.goroutines = s.cfg.Goroutines
	}
	if len(f.pools) == 0 {
		f.pools = []int{connsPerHost}
	}
	sides, err := f.sides(ctx, s)
	if err != nil {
		return err
	}
	for _, goroutines := range f.goroutines {
		s.progress("%s, goroutines: %d", f.what, goroutines)
		laps, err := s.takeTurns(ctx, goroutines, sides)
		if err != nil {
			return err
		}
		plains, ours := laps[:len(f.pools)], laps[len(f.pools):]
		k := best(plains)
		s.addLaps(f.what+", one shard", goroutines, ours[0], plains[k], f.metrics)
		s.addLaps(fmt.Sprintf("%s, %d shards", f.what, fewShards), goroutines, ours[1], plains[k], f.metrics)
		if len(plains) > 1 {
			s.add(f.what+", the best of plain", goroutines, "connections", float64(f.pools[k]))
		}
	}
	return nil
}

// sides returns the pgxpools, and two routers.
func (f few) sides(ctx context.Context, s *stage) ([]call, error) {
	m, err := s.cluster(ctx, fewShards, 1)
	if err != nil {
		return nil, err
	}
	if m, err = s.far(m, f.delay); err != nil {
		return nil, err
	}
	var sides []call
	for _, conns := range f.pools {
		pool, err := s.pool(ctx, m.Hosts()[0], plainName, conns)
		if err != nil {
			return nil, err
		}
		sides = append(sides, f.statement.plain(pool))
	}
	for _, keys := range []int{1, fewShards} {
		r, err := s.router(ctx, m)
		if err != nil {
			return nil, err
		}
		sides = append(sides, f.statement.routed(r, keys))
	}
	return sides, nil
}
