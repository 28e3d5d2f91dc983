package prove_test

import (
	"errors"
	"sync"
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
	stop, calls, wait := make(chan struct{}), atomic.Int64{}, sync.WaitGroup{}
	for i := range 4 {
		wait.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := int64(i+1)<<32 | n
				err := write(t.Context(), s, id)
				if errors.Is(err, router.ErrLost) {
					continue
				}
				var at router.Position
				var note string
				if err == nil {
					at, err = s.Position(t.Context())
				}
				if err == nil {
					err = s.ReadOnly(router.Reads{After: at}).QueryRow(t.Context(), selection, id).Scan(&note)
				}
				if err == nil {
					err = s.ReadOnly(router.Reads{}).QueryRow(t.Context(), selection, 0).Scan(&note)
				}
				if err != nil {
					t.Errorf("call %d: %v", n, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	some := func(what string) {
		t.Helper()
		begun := calls.Load()
		eventually(t, what, func() bool { return t.Failed() || calls.Load() > begun+50 })
	}
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
	close(stop)
	wait.Wait()
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
