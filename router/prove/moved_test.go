package prove_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// withNobody is a server's DSN with a second address, at which nobody listens.
func withNobody(t *testing.T, s *localpg.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strings.Replace(s.DSN(database), address(t, s), address(t, s)+","+l.Addr().String(), 1)
}

// changed goes over to a map that is made of the present one.
func changed(t *testing.T, r *router.Router, change func(*shards.Config)) {
	t.Helper()
	c := r.Map().Config()
	c.Version++
	change(&c)
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetMap(m); err != nil {
		t.Fatal(err)
	}
}

// withStandby changes a host's DSN and its replicas.
func withStandby(dsn string, replicas ...string) func(*shards.Config) {
	return func(c *shards.Config) { c.Hosts[0].DSN, c.Hosts[0].Replicas = dsn, replicas }
}

// TestWaitingCallsGoWithTheirShard has calls wait for a host that is down. When the map says that their shard is on another
// host, they go there, whether or not their old host stays in the map.
func TestWaitingCallsGoWithTheirShard(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{true, false} {
		one, other := start(t), start(t)
		seen := &told{}
		r := open(t, router.Config{Failover: router.Failover{Wait: 10 * testLimit}, Tracers: tracers(seen)}, withNobody(t, one), other.DSN(database))
		s := shard(t, r, 1)
		if err := write(t.Context(), s, 1); err != nil {
			t.Fatal(err)
		}
		if err := one.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testLimit)
		defer cancel()
		errs := make(chan error, 30)
		for i := range cap(errs) / 3 {
			go func() { errs <- read(ctx, s) }()
			go func() {
				err := write(ctx, s, int64(100+i))
				if errors.Is(err, router.ErrLost) {
					err = nil // it was sent before the host was found down
				}
				errs <- err
			}()
			go func() {
				tx, err := s.Begin(ctx)
				if err == nil {
					err = tx.Rollback(ctx)
				}
				errs <- err
			}()
		}
		isDown(t, r, 0)
		changed(t, r, func(c *shards.Config) {
			first := shards.SetOfRanges(shards.Range{First: 0, Last: 0})
			rest := shards.SetOfRanges(shards.Range{First: 1, Last: 2*shardCount - 1})
			c.Placement = []shards.Placement{{Shards: first, Host: "pg-a"}, {Shards: rest, Host: "pg-b"}}
			if !stays {
				c.Hosts = c.Hosts[1:]
				c.Placement = []shards.Placement{{Shards: r.All(), Host: "pg-b"}}
			}
		})
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("the old host stays %t: %v", stays, err)
			}
		}
		if seen.unsent.Load() != 0 {
			t.Errorf("tracers were told of %d calls that were not sent: all were", seen.unsent.Load())
		}
		if n := ask[int](t, other.DSN(database), `select count(*) from shard_00001.ledger`); n < 1 {
			t.Errorf("%d rows on the new host", n)
		}
	}
}

// TestStandbyIsAddedUnderLoad changes a host's DSN, so that it names the standby too, and its replicas. No call fails.
func TestStandbyIsAddedUnderLoad(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := open(t, router.Config{}, p.primary.DSN(database))
	s := shard(t, r, 1)
	some, end := callers(t, 6, func(id int64) error {
		if err := write(t.Context(), s, id); err != nil {
			return err
		}
		if err := read(t.Context(), s); err != nil {
			return err
		}
		return readBack(t.Context(), s, id)
	})
	some("calls before")
	for range 5 {
		changed(t, r, withStandby(dsn(t, p.standby, p.primary)))
		some("calls with the standby")
		changed(t, r, withStandby(dsn(t, p.standby, p.primary), p.standby.DSN(database)))
		some("calls with a replica")
		changed(t, r, withStandby(p.primary.DSN(database)))
		some("calls without them")
	}
	end()
}

// TestLeastConnections opens hosts whose pools make connections at once, before the router has asked for any.
func TestLeastConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 10 {
		r := open(t, router.Config{}, withNobody(t, s)+"&pool_min_conns=3")
		if err := read(t.Context(), shard(t, r, 1)); err != nil {
			t.Error(err)
		}
		r.Close()
	}
}
