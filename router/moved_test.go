package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// movedCalls are calls to a shard, each the first of its kind on a connection or not.
var movedCalls = map[string]func(ctx context.Context, s router.Shard) error{
	"exec": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `insert into photos values (next_id(), 1, 'x')`))
	},
	"known": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `update photos set title = 'x' where id = $1`, 1))
	},
	"query": func(ctx context.Context, s router.Shard) error {
		return s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(new(int))
	},
	"batch": func(ctx context.Context, s router.Shard) error {
		var batch pgx.Batch
		batch.Queue(`insert into photos values (next_id(), 1, 'x')`)
		return s.SendBatch(ctx, &batch).Close()
	},
	"begin": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return second(tx.Exec(ctx, `insert into photos values (next_id(), 1, 'x')`)) })
	},
	"copy": func(ctx context.Context, s router.Shard) error {
		return second(s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner"}, pgx.CopyFromRows([][]any{{time.Now().UnixNano(), 1}})))
	},
}

// oneOn returns a map in which all shards are on a host.
func oneOn(t *testing.T, b *testBundle, version, host int) *shards.Map {
	t.Helper()
	c := b.Map().Config()
	c.Version = version
	c.Placement = []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: shardCount - 1}), Host: fmt.Sprintf("pg-%c", 'a'+host)}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A shard that is not where the map says is looked for in the newest map, and the call goes on at its new home.
func TestShardHasMoved(t *testing.T) {
	t.Parallel()
	for name, call := range movedCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{hosts: 2})
			first, next := oneOn(t, b, 1, 0), oneOn(t, b, 2, 1)
			maps := &source{m: first, news: make(chan struct{})}
			r, err := router.New(ctx, router.Config{Maps: maps, Failover: patient})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			s, err := r.ForShard(5)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 { // the statement is known, and travels with others
				if err := call(ctx, s); err != nil {
					t.Fatal(err)
				}
			}
			b.run(ctx, t, `alter schema shard_00005 rename to shard_00005__moved_1`)
			// The map comes late, and nobody tells of it.
			late := time.AfterFunc(200*time.Millisecond, func() {
				maps.mu.Lock()
				defer maps.mu.Unlock()
				maps.m = next
			})
			defer late.Stop()
			if err := call(ctx, s); err != nil {
				t.Error(err)
			}
			if got := s.Host().Name; got != "pg-b" {
				t.Errorf("the shard is on %s", got)
			}
			if err := call(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without a map that knows better the call fails, and says which shard was not found on which host.
func TestShardIsNowhere(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	maps := &source{m: b.Map(), news: make(chan struct{})}
	r, err := router.New(ctx, router.Config{Maps: maps, Failover: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	b.run(ctx, t, `alter schema shard_00005 rename to shard_00005__moved_1`)
	for name, call := range movedCalls {
		for how, r := range map[string]*router.Router{"maps": r, "map": b.Router} {
			s, err := r.ForShard(5)
			if err != nil {
				t.Fatal(err)
			}
			err = call(ctx, s)
			if !errors.Is(err, router.ErrMoved) || !router.SafeToRetry(err) || !strings.HasPrefix(err.Error(), "shard 5 (shard_00005 on pg-a): ") {
				t.Errorf("%s, %s: got %v", name, how, err)
			}
		}
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	s, err := r.ForShard(5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(short, `insert into photos values (next_id(), 1, 'x')`); err == nil || short.Err() == nil {
		t.Errorf("got %v", err)
	}
}

// The mark of a fence that somebody who may create in a shard's schema has made there hides nothing.
func TestForgedFence(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.run(ctx, t, `create view shard_00005.kiloshard_moved as select 1`)
	for name, call := range movedCalls {
		if err := call(ctx, b.shard(t, 5)); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
