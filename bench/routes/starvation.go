package routes

import (
	"context"
	"runtime"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// starvation runs very many goroutines on two hosts. It measures the longest waits, and what remains after both sides are
// closed.
func starvation(ctx context.Context, s *stage) error {
	m, err := s.cluster(ctx, s.cfg.most(64), 2)
	if err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	r, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	plain, err := s.plainOnEach(ctx, m)
	if err != nil {
		return err
	}
	if err := s.compare(ctx, comparison{
		goroutines: s.cfg.Crowd,
		sides:      []call{plain, selects.routed(r, m.Len())},
		rows:       []row{{"select on 2 hosts", 1, 0}},
		metrics:    []string{perSecond, p50, p99, p999, longest},
	}); err != nil {
		return err
	}
	if err := s.addSessions(ctx, m, "before Close", func(n int) bool { return n > 0 }); err != nil {
		return err
	}
	s.close()
	left := 0
	if err := until(ctx, func() (bool, error) {
		left = max(0, runtime.NumGoroutine()-before)
		return left == 0, nil
	}); err != nil {
		return err
	}
	if err := s.addSessions(ctx, m, "after Close", func(n int) bool { return n == 0 }); err != nil {
		return err
	}
	s.add("after Close of both", 0, "goroutines left", float64(left))
	return nil
}

// plainOnEach selects through a pgxpool for each host, in one schema of it, as if there were no shards.
func (s *stage) plainOnEach(ctx context.Context, m *shards.Map) (call, error) {
	hosts := m.Hosts()
	pools, texts, owners := make([]*pgxpool.Pool, len(hosts)), make([]string, len(hosts)), make([]int64, len(hosts))
	for i, host := range hosts {
		var err error
		if pools[i], err = s.pool(ctx, host, plainName, connsPerHost); err != nil {
			return nil, err
		}
		first := m.NumbersOn(host.Name)[0]
		texts[i], owners[i] = photoByID(m.Schema(first)+"."), int64(first)
	}
	return func(ctx context.Context, worker, i int) (bool, error) {
		k := (worker + i) % len(pools)
		return false, selectPhoto(ctx, pools[k], texts[k], 1+(worker+i)%photosPerShard, owners[k])
	}, nil
}

// addSessions adds the number of sessions of both sides on all hosts, when it is as expected or the time is up.
func (s *stage) addSessions(ctx context.Context, m *shards.Map, what string, expected func(n int) bool) error {
	var counts [2]float64
	for i, name := range []string{oursName, plainName} {
		if err := until(ctx, func() (bool, error) {
			n, err := sessions(ctx, m, name)
			counts[i] = float64(n)
			return expected(n), err
		}); err != nil {
			return err
		}
	}
	s.add(what, 0, "sessions", counts[0], counts[1])
	return nil
}
