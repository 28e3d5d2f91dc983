package routes

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	measured   = 16 // goroutines whose calls count
	disturbing = 4  // goroutines beside them, all in one shard
)

// disturbance is a call that keeps a connection busy.
type disturbance func(ctx context.Context, on router.Shard) error

// beside compares selects in some shards beside goroutines that disturb another one with the same selects without, which
// stand in place of pgxpool.
func beside(ctx context.Context, s *stage) error {
	m, err := s.cluster(ctx, fewShards, 1)
	if err != nil {
		return err
	}
	r, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	own, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	if err := s.lockNotes(ctx, m); err != nil {
		return err
	}
	for _, kind := range []struct {
		what    string
		disturb disturbance
	}{
		{"reads that wait for a lock", leaving(200*time.Millisecond, "select count(*) from notes")},
		{"callers who leave", leaving(100*time.Millisecond, "select pg_sleep(1)")},
		{"slow readers", readSlowly},
	} {
		s.progress("%s", kind.what)
		if err := s.compare(ctx, comparison{
			goroutines: measured, besides: disturbing,
			sides: []call{disturbed(r, r, kind.disturb), disturbed(r, r, idle), disturbed(r, own, kind.disturb)},
			rows: []row{
				{"select beside " + kind.what + ", and without", 0, 1},
				{"select beside " + kind.what + ", and with these on connections of their own", 0, 2},
			},
			metrics: []string{p50, p99, p999, longest},
		}); err != nil {
			return err
		}
	}
	return nil
}

// disturbed selects in all shards but the first, which the last goroutines disturb through a router of theirs.
func disturbed(r, theirs *router.Router, disturb disturbance) call {
	text := photoByID("")
	return func(ctx context.Context, worker, i int) (ignored bool, err error) {
		if worker >= measured {
			shard, err := forKey(ctx, theirs, 0)
			if err != nil {
				return true, err
			}
			return true, disturb(ctx, shard)
		}
		key := 1 + int64(worker+i)%(fewShards-1)
		shard, err := forKey(ctx, r, key)
		if err != nil {
			return false, err
		}
		return selects.run(ctx, shard, text, key, worker, i)
	}
}

// leaving makes a call that does not end in time.
func leaving(after time.Duration, query string) disturbance {
	return func(ctx context.Context, on router.Shard) error {
		limited, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		_, err := on.Exec(limited, query)
		switch {
		case err == nil:
			return fmt.Errorf("%s: it ended, expected it to wait", query)
		case limited.Err() != nil:
			return ctx.Err()
		}
		return err
	}
}

// readSlowly reads a result of 4 MB in half a second.
func readSlowly(ctx context.Context, on router.Shard) error {
	rows, err := on.Query(ctx, "select repeat('x', 40000) from generate_series(1, 100)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		time.Sleep(5 * time.Millisecond)
	}
	return rows.Err()
}

func idle(context.Context, router.Shard) error {
	time.Sleep(10 * time.Millisecond)
	return nil
}

// lockNotes locks the table of notes of the first shard, until the stage closes.
func (s *stage) lockNotes(ctx context.Context, m *shards.Map) error {
	conn, err := server.Connect(ctx, m.Hosts()[0])
	if err != nil {
		return err
	}
	s.closeLater(func() { server.Close(conn) })
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "lock table "+m.Schema(0)+".notes")
	return err
}
