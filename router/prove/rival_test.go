package prove_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const rivals = `"more than one primary"`

func kill(t *testing.T, s *localpg.Server) {
	t.Helper()
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func restart(t *testing.T, s *localpg.Server) {
	t.Helper()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func rows(t *testing.T, s *localpg.Server) int {
	t.Helper()
	return ask[int](t, s.DSN(database), `select count(*) from shard_00001.ledger`)
}

// TestAnotherCluster has one address of a host be that of a server of another cluster, which takes writes and has the same
// tables. As long as nothing tells which of them is meant, neither is written to.
func TestAnotherCluster(t *testing.T) {
	t.Parallel()
	right, wrong := start(t), start(t)
	do(t, right.DSN(database), keeper)
	do(t, wrong.DSN(database), keeper)
	var out log
	credentials := func(context.Context, shards.Host) (shards.Credentials, error) {
		return shards.Credentials{Password: "first"}, nil
	}
	cfg := router.Config{Logger: out.logger(), Credentials: credentials, Failover: router.Failover{NoWait: true}}
	r := open(t, cfg, as(t, dsn(t, wrong, right)))
	s := shard(t, r, 1)
	eventually(t, "both have been asked", func() bool {
		err := write(t.Context(), s, 1)
		if !errors.Is(err, router.ErrHostDown) {
			t.Fatalf("a write to one of two clusters: %v; logged:\n%s", err, out.String())
		}
		return strings.Count(err.Error(), "so does a server of another cluster") == 2
	})
	eventually(t, "the log tells of both", func() bool { return out.count(rivals) > 0 })
	kill(t, wrong)
	eventually(t, "there is only one left", func() bool { return write(t.Context(), s, 1) == nil })
	restart(t, wrong)
	eventually(t, "the wrong one is noticed", func() bool { return out.count("it belongs to another cluster") > 0 })
	if err := write(t.Context(), s, 2); err != nil {
		t.Error(err)
	}
	kill(t, right)
	isDown(t, r, 0)
	eventually(t, "the wrong one has been asked", func() bool { return probed(t, wrong) })
	if err := write(t.Context(), s, 3); !errors.Is(err, router.ErrHostDown) || !strings.Contains(err.Error(), "it belongs to another cluster") {
		t.Errorf("the wrong one is all that is left: %v", err)
	}
	if n := rows(t, wrong); n != 1 {
		t.Errorf("%d rows are on the wrong one", n)
	}
	restart(t, right)
	if n := rows(t, right); n != 3 {
		t.Errorf("%d rows are on the right one", n)
	}
}

// TestSplitBrain has two standbys of one primary be promoted, each to the same timeline. Calls stay with the one that was
// found first, and the log tells of the other one.
func TestSplitBrain(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	second := shardtest.Standby(t, p.primary, "second")
	var out log
	r := open(t, router.Config{Logger: out.logger(), Failover: router.Failover{Wait: testLimit}}, dsn(t, p.primary, second, p.standby))
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row is on the second standby, too", func() bool { return rows(t, second) == 2 })
	kill(t, p.primary)
	isDown(t, r, 0)
	do(t, second.DSN(database), `alter system set synchronous_standby_names = ''`)
	promote(t, p.standby)
	eventually(t, "a primary is found", func() bool { return stats(r, 0).Primary == address(t, p.standby) })
	if out.count(rivals) > 0 {
		t.Errorf("one primary, and logged:\n%s", out.String())
	}
	promote(t, second)
	eventually(t, "the other one is noticed", func() bool { return out.count(rivals) > 0 })
	for n := range int64(20) {
		if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, 100+n) }); err != nil {
			t.Error(err)
		}
	}
	if got := stats(r, 0); got.Primary != address(t, p.standby) || got.Timeline != 2 || got.Rivals != 1 || out.count(rivals) != 1 {
		t.Errorf("got %+v, logged:\n%s", got, out.String())
	}
	if n := rows(t, second); n != 2 {
		t.Errorf("%d rows are on the other one", n)
	}
}
