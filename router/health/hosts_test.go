package health_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A primary with a standby, from which one also reads, is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	primary := shardtest.OwnServer(t)
	run(ctx, t, primary, `create schema shard_00000`)
	standby := shardtest.Standby(t, primary, "standby")

	first, second := address(t, primary), address(t, standby)
	both := strings.Replace(primary.DSN("postgres"), first, first+","+second, 1)
	m, err := shardtest.MapConfig(1, []shards.Host{{Name: "pg-a", DSN: both, Replicas: []string{standby.DSN("postgres")}}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: router.Failover{FailAfter: testLimit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	c := health.New(r, health.Config{Addresses: true, Timeout: 30 * time.Second, MaxAge: time.Nanosecond})
	quiet := health.New(r, health.Config{Timeout: 30 * time.Second, MaxAge: time.Nanosecond})

	now, body := report(t, c)
	if a := now.Hosts[0]; !a.Up || a.Primary != first || a.Breaker != "" || !a.DownSince.IsZero() || a.Replicas != nil {
		t.Errorf("at first: %s", body)
	}
	s, err := r.ForShard(0)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica is used", func() bool {
		var one int
		if err := s.ReadOnly(router.Reads{}).QueryRow(ctx, `select 1`).Scan(&one); err != nil {
			t.Fatal(err)
		}
		now, body = report(t, c)
		of := now.Hosts[0].Replicas
		return len(of) == 1 && of[0].Usable && of[0].Milliseconds > 0
	})

	if err := primary.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the breaker is open", func() bool {
		now, body = report(t, c)
		a := now.Hosts[0]
		return a.Breaker == "open" && !a.DownSince.IsZero() && a.Primary == "" && !a.Up
	})
	run(ctx, t, standby, `select pg_promote()`)
	eventually(t, "the standby is the primary", func() bool {
		now, body = report(t, c)
		a := now.Hosts[0]
		return a.Up && a.Primary == second && a.Breaker == "" && a.DownSince.IsZero() && a.RoleChanges == 1
	})
	for _, address := range []string{first, second} {
		if _, body := report(t, quiet); strings.Contains(body, address) {
			t.Errorf("%s is in the answer, for which nobody has asked: %s", address, body)
		}
	}
}

func address(t *testing.T, s *localpg.Server) string {
	t.Helper()
	at, _, found := strings.Cut(shards.Host{DSN: s.DSN("postgres")}.Address(), "/")
	if !found {
		t.Fatal("a server has no address")
	}
	return at
}

// run runs SQL on a server.
func run(ctx context.Context, t *testing.T, s *localpg.Server, query string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, query); err != nil {
		t.Fatal(err)
	}
}
