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
	innocents = 16 // goroutines whose calls count
	culprits  = 4  // goroutines beside them, all in one shard
)

// culprit is a call that keeps a connection for long.
type culprit struct {
	what string
	call func(ctx context.Context, on router.Shard) error
}

func allCulprits() []culprit {
	return []culprit{
		{"reads that wait for a lock", func(ctx context.Context, on router.Shard) error {
			return leave(ctx, 200*time.Millisecond, on, "select count(*) from notes")
		}},
		{"callers who leave", func(ctx context.Context, on router.Shard) error {
			return leave(ctx, 100*time.Millisecond, on, "select pg_sleep(1)")
		}},
		{"slow readers", readSlowly},
	}
}

// leave makes a call that does not end in time.
func leave(ctx context.Context, after time.Duration, on router.Shard, query string) error {
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

// readSlowly reads an answer of 4 MB in half a second.
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

// measureBeside compares selects in some shards beside culprits in another one of the host with the same selects without,
// which stand in place of pgxpool.
func measureBeside(ctx context.Context, b *bench) error {
	m, err := b.newCluster(ctx, fewShards, 1)
	if err != nil {
		return err
	}
	r, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer r.Close()
	own, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer own.Close()
	unlock, err := lockNotes(ctx, m)
	if err != nil {
		return err
	}
	defer unlock()
	for _, c := range allCulprits() {
		b.progress("%s", c.what)
		laps, err := b.compare(ctx, innocents+culprits, besides(r, r, c.call), besides(r, r, idles), besides(r, own, c.call))
		if err != nil {
			return err
		}
		b.addLaps("select beside "+c.what+", and without", innocents, laps[0], laps[1], p50, p99, p999, longest)
		b.addLaps("select beside "+c.what+", and with these on connections of their own", innocents, laps[0], laps[2], p50, p99, p999, longest)
	}
	return nil
}

func idles(context.Context, router.Shard) error {
	time.Sleep(10 * time.Millisecond)
	return nil
}

// besides has the innocents select in all shards but the first, and the culprits do what they do in the first.
func besides(r, culprits *router.Router, does func(context.Context, router.Shard) error) call {
	run := selects("")
	return func(ctx context.Context, worker, i int) (apart bool, err error) {
		if worker >= innocents {
			shard, err := forKey(ctx, culprits, 0)
			if err != nil {
				return true, err
			}
			return true, does(ctx, shard)
		}
		key := 1 + int64(worker+i)%(fewShards-1)
		shard, err := forKey(ctx, r, key)
		if err != nil {
			return false, err
		}
		return run(ctx, shard, key, worker, i)
	}
}

// lockNotes locks the table of notes of the first shard, until unlock is called.
func lockNotes(ctx context.Context, m *shards.Map) (unlock func(), err error) {
	conns, err := server.Open(ctx, m.Hosts()[0], 1)
	if err != nil {
		return nil, err
	}
	tx, err := conns[0].Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "lock table "+m.Schema(0)+".notes")
	}
	if err != nil {
		server.Close(conns)
		return nil, err
	}
	return func() { server.Close(conns) }, nil
}
