package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

func TestHostDown(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	config := b.Map().Config()
	config.Hosts = append(config.Hosts, shards.Host{Name: "pg-down", DSN: "postgres://app:s3cret@127.0.0.1:1/app?connect_timeout=5"})
	config.Placement = []shards.Placement{
		{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 31}), Host: "pg-a"},
		{Shards: shards.SetOfRanges(shards.Range{First: 32, Last: 63}), Host: "pg-down"},
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)

	for n := range int64(shardCount) {
		var owner int64
		s, err := r.ForKey(ctx, shards.NumberKey(n))
		if err != nil {
			t.Fatal(err)
		}
		err = s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		if n < 32 && (err != nil || owner != n) {
			t.Errorf("shard %d was answered by %d: %v", n, owner, err)
		}
		if n >= 32 {
			isHostError(t, err, "pg-down")
		}
	}
	s, err := r.ForKey(ctx, shards.NumberKey(40))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Exec(ctx, `select 1`)
	isHostError(t, err, "pg-down")
	rows, err := s.Query(ctx, `select 1`)
	isHostError(t, err, "pg-down")
	if rows.Next() || !same(rows.Err(), err) || !same(rows.Scan(), err) {
		t.Error("rows of a host that is down")
	}
	rows.Close()
	_, err = s.Begin(ctx)
	isHostError(t, err, "pg-down")
	isHostError(t, s.SendBatch(ctx, &pgx.Batch{}).Close(), "pg-down")
	_, err = s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows(nil))
	isHostError(t, err, "pg-down")
	_, err = s.NextID(ctx)
	isHostError(t, err, "pg-down")
	_, err = s.NextIDs(ctx, 3)
	isHostError(t, err, "pg-down")
	err = r.Ping(ctx)
	isHostError(t, err, "pg-down")
	if strings.Contains(err.Error(), "pg-a") {
		t.Errorf("the other host is in %v", err)
	}
}

func isHostError(t *testing.T, err error, host string) {
	t.Helper()
	var hostErr *shards.HostError
	if !errors.As(err, &hostErr) || hostErr.Host != host {
		t.Errorf("got %v, want a HostError about %s", err, host)
	}
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "s3cret") {
		t.Errorf("the password is in %s", text)
	}
}

func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	tx, err := b.shard(t, 1).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err = b.shard(t, 2).QueryRow(short, `select 1`).Scan(nil)
	isHostError(t, err, "pg-a")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	b.isFree(ctx, t)
}

// A statement whose caller leaves ends with its connection, and the pool makes another.
func TestCancelInMidQuery(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const slow = `select pg_sleep(100) from photos where id = $1`
	ways := map[string]func(ctx context.Context) error{
		"Exec":     func(ctx context.Context) error { _, err := s.Exec(ctx, slow, 1); return err },
		"string":   func(ctx context.Context) error { _, err := s.Exec(ctx, `select pg_sleep(100)`); return err },
		"QueryRow": func(ctx context.Context) error { return s.QueryRow(ctx, slow, 1).Scan(nil) },
		"rows": func(ctx context.Context) error {
			rows, err := s.Query(ctx, `select case when n = 5000 then pg_sleep(100)::text else repeat('x', 100) end from generate_series(1, 5000) n`)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
		"batch": func(ctx context.Context) error {
			var batch pgx.Batch
			batch.Queue(`select 1`)
			batch.Queue(slow, 1)
			return s.SendBatch(ctx, &batch).Close()
		},
		"transaction": func(ctx context.Context) error {
			return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, slow, 1); return err })
		},
	}
	for name, way := range ways {
		for _, known := range []bool{false, true} { // in the second round the statements may be prepared
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			err := way(short)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, %t: got %v", name, known, err)
			}
			var owner int
			if err := s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil || owner != 1 {
				t.Errorf("%s, %t: afterwards: %d, %v", name, known, owner, err)
			}
		}
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := way(done); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled before: got %v", name, err)
		}
	}
	b.isFree(ctx, t)
}

func TestServerEndsConnection(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	for range 2 {
		if err := s.QueryRow(ctx, `select pg_terminate_backend(pg_backend_pid())`).Scan(nil); err == nil {
			t.Error("a dead session answered")
		}
		if err := s.QueryRow(ctx, `select owner from photos`).Scan(new(int)); err != nil {
			t.Error(err)
		}
	}
}

func TestClosedRouter(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	b.isFree(ctx, t)
	b.Close()
	b.Close()
	isHostError(t, b.shard(t, 63).QueryRow(ctx, `select 1`).Scan(nil), "pg-b")
}

func TestPoolHook(t *testing.T) {
	t.Parallel()
	var seen []string
	b, _ := setup(t, options{hosts: 2})
	r, err := router.New(t.Context(), router.Config{Map: b.Map(), Pool: func(host shards.Host, cfg *pgxpool.Config) error {
		seen = append(seen, host.Name)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := strings.Join(seen, " "); got != "pg-a pg-b" {
		t.Errorf("called for %q", got)
	}
}
