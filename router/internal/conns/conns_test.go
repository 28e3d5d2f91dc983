package conns_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// bench is the pool of a host with some shards, each with a table photos.
type bench struct {
	*testing.T
	*conns.Pool
	shards []*conns.Shard
}

func open(t *testing.T, connections int32, count int) bench {
	t.Helper()
	place := shardtest.Hosts(t, 1)[0]
	login, config, err := connect.ForPool(place)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = connections
	pool, err := conns.Open(t.Context(), conns.Config{
		Host: place, Pool: config, Login: login, Statements: 8, FailAfter: time.Second, Wait: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close(context.Background(), errors.New("the test is over")) })
	conn, err := pool.ConnectBeside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	b := bench{t, pool, nil}
	for n := range count {
		schema := fmt.Sprintf("shard_%05d", n)
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("create schema %[1]s; create table %[1]s.photos as select %[2]d as id", schema, n)); err != nil {
			t.Fatal(err)
		}
		shard := &conns.Shard{}
		shard.Init(pool, session.Shard{Number: shards.Number(n), Schema: schema, Path: schema + ", pg_temp"})
		b.shards = append(b.shards, shard)
	}
	pool.Expect(count)
	return b
}

// read asks for a number in a shard, and repeats that as often as the pool says.
func (b bench) read(ctx context.Context, at *conns.Shard, sql string) (n int, err error) {
	var attempts conns.Attempts
	for {
		r, err := attempts.Submit(ctx, at, "", sql, nil, false)
		if err == nil {
			rows, _ := r.Query(sql, nil) // they have its error
			if n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err == nil {
				return n, nil
			}
		}
		if again, err := r.Retry(ctx, &attempts, err); !again {
			return 0, err
		}
	}
}

// Many callers of many shards on few connections: each has the answer of its own shard, and no connection more is made.
func TestManyCallersOnFewConnections(t *testing.T) {
	t.Parallel()
	b := open(t, 2, 8)
	var callers sync.WaitGroup
	for caller := range 64 {
		callers.Go(func() {
			for turn := range 10 {
				n := (caller + turn) % len(b.shards)
				if got, err := b.read(t.Context(), b.shards[n], "select id from photos"); err != nil || got != n {
					t.Errorf("shard %d: %d, %v", n, got, err)
				}
			}
		})
	}
	callers.Wait()
	if got := b.Stats().Conns; got > 2 {
		t.Errorf("%d connections", got)
	}
}

// Who waits for a connection leaves when its context ends, and the connection goes to the next one.
func TestWaitForAConnection(t *testing.T) {
	t.Parallel()
	b := open(t, 1, 1)
	var first, second, third conns.Attempts
	held, err := first.Acquire(t.Context(), b.shards[0], operation.Tx, "first")
	if err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.Acquire(hurried, b.shards[0], operation.Tx, "second"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second got %v, expected its context's error", err)
	}
	next := make(chan error)
	go func() {
		r, err := third.Acquire(t.Context(), b.shards[0], operation.Tx, "third")
		if err == nil {
			r.Release()
		}
		next <- err
	}()
	select {
	case err := <-next:
		t.Fatalf("the third did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	held.Release()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// A connection that its server has ended is replaced, and a read that was lost with it is repeated once it is.
func TestConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	b := open(t, 1, 1)
	const pid = "select pg_backend_pid()"
	before, err := b.read(t.Context(), b.shards[0], pid)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := b.ConnectBeside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "select pg_terminate_backend($1, 10000)", before); err != nil {
		t.Fatal(err)
	}
	if after, err := b.read(t.Context(), b.shards[0], pid); err != nil || after == before {
		t.Errorf("session %d, after %d: %v", after, before, err)
	}
}
