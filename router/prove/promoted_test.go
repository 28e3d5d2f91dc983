package prove_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// TestReplicaIsPromoted has the standby that is promoted be a replica of the host as well. Whoever reads goes on, and sees
// what was written before; the replica is one no more, and what is measured of the primary is measured of the new one.
func TestReplicaIsPromoted(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := open(t, router.Config{Failover: router.Failover{Wait: testLimit}}, p.primary.DSN(database))
	changed(t, r, withStandby(dsn(t, p.primary, p.standby), p.standby.DSN(database)))
	s := shard(t, r, 1)
	some, end := callers(t, 4, func(id int64) error {
		switch err := write(t.Context(), s, id); {
		case errors.Is(err, router.ErrLost):
			return errNotCounted
		case err != nil:
			return err
		}
		if err := readBack(t.Context(), s, id); err != nil {
			return err
		}
		var note string
		return s.ReadOnly(router.Reads{}).QueryRow(t.Context(), selection, 0).Scan(&note)
	})
	replica := func() router.ReplicaStats { return r.ReadStats()[0].Replicas[0] }
	eventually(t, "the replica is read from", func() bool { return t.Failed() || replica().Used && replica().Reads > 10 })
	if err := p.primary.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	isDown(t, r, 0)
	promote(t, p.standby)
	some("calls to the new primary")
	eventually(t, "the new primary is measured", func() bool { return t.Failed() || r.ReadStats()[0].PrimaryErr == "" })
	some("calls afterwards")
	end()
	if got := replica(); got.Used || got.Why == "" {
		t.Errorf("the replica: %+v", got)
	}
	if got := stats(r, 0); got.Primary != address(t, p.standby) || got.Breaker != router.BreakerClosed {
		t.Errorf("got %+v", got)
	}
}

// TestPromotedReplicaIsLeftAlone has a map that goes on to name a server as a replica which takes writes. However much a
// replica is waited for, it is asked now and then whether it has become one.
func TestPromotedReplicaIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	var made atomic.Int64
	r := open(t, router.Config{Pool: func(host shards.Host, cfg *pgxpool.Config) error {
		if host.Name != "pg-a/0" {
			return nil
		}
		return countConnects(&made)(host, cfg)
	}}, s.DSN(database))
	changed(t, r, withStandby(s.DSN(database), s.DSN(database)))
	for range 20 {
		var note string
		reads := router.Reads{ReplicaOnly: true, Wait: 200 * time.Millisecond}
		err := shard(t, r, 1).ReadOnly(reads).QueryRow(t.Context(), selection, 0).Scan(&note)
		if !errors.Is(err, router.ErrNoReplica) {
			t.Fatal(err)
		}
	}
	if n := made.Load(); n == 0 || n > 20 {
		t.Errorf("%d connections to what is no replica", n)
	}
}
