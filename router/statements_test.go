package router_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// A statement that is known is one write to the socket, one that is new is two.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name string
		run  func(ctx context.Context, s router.Shard) error
		new  int64
		then int64
	}{
		{"Exec", func(ctx context.Context, s router.Shard) error {
			_, err := s.Exec(ctx, `update photos set title = $1`, "x")
			return err
		}, 2, 1},
		{"Exec without arguments", func(ctx context.Context, s router.Shard) error {
			_, err := s.Exec(ctx, `select 1; select 2`)
			return err
		}, 1, 1},
		{"Exec in exec mode", func(ctx context.Context, s router.Shard) error {
			_, err := s.Exec(ctx, `update photos set title = $1`, pgx.QueryExecModeExec, "x")
			return err
		}, 1, 1},
		{"QueryRow", func(ctx context.Context, s router.Shard) error {
			return s.QueryRow(ctx, `select id from photos`).Scan(new(int64))
		}, 2, 1},
		{"SendBatch", func(ctx context.Context, s router.Shard) error {
			var batch pgx.Batch
			for i := range 10 {
				batch.Queue(fmt.Sprintf(`select %d from photos where id = $1`, i), i)
			}
			return s.SendBatch(ctx, &batch).Close()
		}, 2, 1},
		{"Tx", func(ctx context.Context, s router.Shard) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `delete from photos where id = $1`, 1)
				return err
			})
		}, 4, 3},
	}
	db, _ := setup(t, options{})
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			var writes atomic.Int64
			b, ctx := setup(t, options{on: db, conns: 1, pool: counting(&writes)})
			for i, want := range []int64{way.new, way.then, way.new, way.then} {
				s := b.shard(t, i/2)
				if i == 0 {
					b.isFree(ctx, t) // connects
				}
				before := writes.Load()
				if err := way.run(ctx, s); err != nil {
					t.Fatal(err)
				}
				if got := writes.Load() - before; got != want {
					t.Errorf("call %d on %s: %d round trips, want %d", i, s, got, want)
				}
			}
		})
	}
}

// counting counts what a pool's connections write.
func counting(writes *atomic.Int64) func(*pgxpool.Config) {
	return func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return countingConn{conn, writes}, err
		}
	}
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// The server keeps no more statements than the router does, of its own as many as of the callers', but for those that the next prepare closes.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 5
	const most = 2*limit + 3
	b, ctx := setup(t, options{conns: 1, statements: limit})
	onServer := func() (kept int) {
		sql := `select count(*) from pg_prepared_statements where name ~ '^kiloshard_[0-9a-f]{32}$'`
		if err := b.shard(t, 0).QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	for i := range 50 {
		var owner int
		n := i * 7 % shardCount
		if err := b.shard(t, n).QueryRow(ctx, `select owner from photos`).Scan(&owner); err != nil || owner != n {
			t.Fatalf("shard %d was answered by %d: %v", n, owner, err)
		}
		if got := onServer(); got > most {
			t.Fatalf("%d statements after %d shards", got, i+1)
		}
	}
	for range 2 { // more statements in a batch than are kept
		var batch pgx.Batch
		sum := 0
		for i := range 3 * limit {
			batch.Queue(fmt.Sprintf(`select owner + %d from photos where id = $1`, i), 1).QueryRow(func(row pgx.Row) error {
				var value int
				err := row.Scan(&value)
				sum += value
				return err
			})
		}
		if err := b.shard(t, 2).SendBatch(ctx, &batch).Close(); err != nil || sum != 15*2+14*15/2 {
			t.Fatalf("sum %d, %v", sum, err)
		}
	}
	if err := b.shard(t, 1).QueryRow(ctx, `select owner from photos`).Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	if got := onServer(); got > most {
		t.Errorf("%d statements after the batches", got)
	}
	for n := range 50 {
		if _, err := b.shard(t, n).Exec(ctx, `update photos set title = $1`, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := onServer(); got > most {
		t.Errorf("%d statements after writes to 50 shards", got)
	}
}

// A statement in use stays, the one not used for longest goes.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	t.Parallel()
	var writes atomic.Int64
	b, ctx := setup(t, options{conns: 1, statements: 2, pool: counting(&writes)})
	b.isFree(ctx, t)
	for i, step := range []struct {
		shard int
		trips int64
	}{{1, 2}, {2, 2}, {1, 1}, {3, 2}, {1, 1}, {2, 2}, {3, 2}} {
		before := writes.Load()
		if err := b.shard(t, step.shard).QueryRow(ctx, `select owner from photos`).Scan(new(int)); err != nil {
			t.Fatal(err)
		}
		if got := writes.Load() - before; got != step.trips {
			t.Errorf("step %d on shard %d: %d round trips, want %d", i, step.shard, got, step.trips)
		}
	}
}
