package routes

import (
	"context"
	"fmt"
	"time"
)

// loneDelay is the delay of a network, each way, in the part lone.
const loneDelay = 250 * time.Microsecond

// lone measures one goroutine on one shard, locally and over a network.
func lone(ctx context.Context, s *stage) error {
	if err := loneOver(ctx, s, 0, ""); err != nil {
		return err
	}
	return loneOver(ctx, s, loneDelay, fmt.Sprintf(", %v a round trip", 2*loneDelay))
}

func loneOver(ctx context.Context, s *stage, delay time.Duration, suffix string) error {
	defer s.close()
	m, err := s.cluster(ctx, fewShards, 1)
	if err != nil {
		return err
	}
	if m, err = s.far(m, delay); err != nil {
		return err
	}
	pool, err := s.pool(ctx, m.Hosts()[0], plainName, connsPerHost)
	if err != nil {
		return err
	}
	r, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		what string
		statement
	}{{"select", selects}, {"insert", inserts}} {
		s.progress("%s%s", kind.what, suffix)
		if err := s.compare(ctx, comparison{
			goroutines: 1,
			sides:      []call{kind.plain(pool), kind.routed(r, 1)},
			rows:       []row{{kind.what + ", one shard" + suffix, 1, 0}},
			metrics:    []string{perSecond, p50, mean},
		}); err != nil {
			return err
		}
	}
	entered, err := s.entered(ctx, r, m)
	if err != nil {
		return err
	}
	s.progress("entry%s", suffix)
	return s.compare(ctx, comparison{
		goroutines: 1,
		sides:      []call{selects.plain(pool), selects.routed(r, 1), entered.selects},
		rows: []row{
			{"select, nothing but an entry" + suffix, 2, 0},
			{"select, beside that with nothing but an entry" + suffix, 1, 2},
		},
		metrics: []string{perSecond, mean},
	})
}
