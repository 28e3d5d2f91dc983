package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// What cannot be done on a handle is done in a session of the shard's own.
func TestConnConfig(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 9)
	config, err := s.ConnConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range []string{`listen news`, `vacuum photos`, `create index concurrently on photos (owner)`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := s.Exec(ctx, `select pg_notify('news', $1)`, "of shard 9"); err != nil {
		t.Fatal(err)
	}
	if news, err := conn.WaitForNotification(ctx); err != nil || news.Payload != "of shard 9" {
		t.Errorf("got %v, %v", news, err)
	}
	if text := fmt.Sprintf("%v %+v", b.shard(t, 9), b.Router); strings.Contains(text, "password") || strings.Contains(text, "postgres://") {
		t.Errorf("printed as %s", text)
	}
}

// openPool makes a pool of the shard's own.
func openPool(ctx context.Context, t *testing.T, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// A pool of a shard's own goes where the shard goes, and what is held there fails.
func TestPoolConfigFollows(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 3})
	if err := b.SetMap(b.wander(t, 2)); err != nil {
		t.Fatal(err)
	}
	const n = shardCount / 2
	pool := openPool(ctx, t, b.shard(t, n).PoolConfig())
	const query = `select owner, current_database() from photos`
	moves, last := 0, ""
	for version := 3; version < 30; version++ {
		var owner int
		var database string
		if err := pool.QueryRow(ctx, query).Scan(&owner, &database); err != nil || owner != n {
			t.Fatalf("version %d: owner %d, %v", version, owner, err)
		}
		if at := b.shard(t, n).Host(); !strings.Contains(at.DSN, "/"+database+"?") && !strings.HasSuffix(at.DSN, "/"+database) {
			t.Errorf("version %d: read in %s, the shard is on %s", version, database, at.Name)
		}
		if last != "" && database != last {
			moves++
		}
		last = database
		if err := b.SetMap(b.wander(t, version)); err != nil {
			t.Fatal(err)
		}
	}
	if moves == 0 {
		t.Error("the shard did not move")
	}
}

// Credentials are asked for at each connect.
func TestPoolConfigCredentials(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	errSealed := errors.New("the vault is sealed")
	r, err := router.New(ctx, router.Config{Map: b.Map(), Credentials: func(context.Context, shards.Host) (shards.Credentials, error) {
		return shards.Credentials{}, errSealed
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s, err := r.ForShard(1)
	if err != nil {
		t.Fatal(err)
	}
	var host *shards.HostError
	if _, err := s.ConnConfig(ctx); !errors.As(err, &host) || !errors.Is(err, errSealed) {
		t.Errorf("got %v", err)
	}
}
