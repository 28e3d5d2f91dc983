package provision_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// addressOf returns host and port of a server.
func addressOf(t *testing.T, s *localpg.Server) string {
	t.Helper()
	u, err := url.Parse(s.DSN("postgres"))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	return u.Host
}

// hostAt returns a host with these addresses and replicas.
func hostAt(t *testing.T, s *localpg.Server, addresses []string, replicas ...string) shards.Host {
	t.Helper()
	dsn := func(addresses ...string) string {
		return strings.Replace(s.DSN("postgres"), "@"+addressOf(t, s)+"/", "@"+strings.Join(addresses, ",")+"/", 1)
	}
	host := shards.Host{Name: "pg-a", DSN: dsn(addresses...)}
	for _, at := range replicas {
		host.Replicas = append(host.Replicas, dsn(at))
	}
	return host
}

// promote promotes a standby.
func promote(t *testing.T, s *localpg.Server) {
	t.Helper()
	if on(t, shards.Host{DSN: s.DSN("postgres")}, "select pg_promote()")[0] != "t" {
		t.Fatal("the standby was not promoted")
	}
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("never true: %s", what)
		}
	}
}

// A host has two primaries if a standby is promoted while the old primary takes writes, wherever the map names the two. One server has no
// rival at another address of its own, and none that refuses writes.
func TestRivals(t *testing.T) {
	t.Parallel()
	old := shardtest.OwnServer(t)
	next := shardtest.Standby(t, old, "standby")
	third := shardtest.Standby(t, old, "third")
	first, second, last := addressOf(t, old), addressOf(t, next), addressOf(t, third)
	mapOf := func(host shards.Host) *shards.Map { return build(t, shardtest.MapConfig(2, []shards.Host{host})) }
	both := mapOf(hostAt(t, old, []string{first, second}, last))
	beside := mapOf(hostAt(t, old, []string{first}, second, last))
	twice := mapOf(hostAt(t, old, []string{first, strings.Replace(first, "127.0.0.1", "localhost", 1)}, first))
	create(t, mapOf(hostAt(t, old, []string{first})))
	none := func(when string, all ...*shards.Map) {
		t.Helper()
		for _, m := range all {
			if got := provision.Rivals(t.Context(), m); len(got) != 0 {
				t.Errorf("%s: got %v, want none", when, got)
			}
			if s := provision.Status(t.Context(), m)[0]; s.Err != nil || len(s.Rivals) != 0 {
				t.Errorf("%s: status has %v, %v, want none", when, s.Rivals, s.Err)
			}
		}
	}
	rival := func(when string, m *shards.Map, want provision.Rival) {
		t.Helper()
		want.Host = "pg-a"
		if got := provision.Rivals(t.Context(), m); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %+v, want %+v", when, got, want)
		}
		s := provision.Status(t.Context(), m)[0]
		if s.Err != nil || len(s.Rivals) != 1 || s.Rivals[0] != want {
			t.Errorf("%s: status has %+v, %v", when, s.Rivals, s.Err)
		}
		replicas := s.MapReplicas
		if at := replicas[len(replicas)-1]; at.Address != last || at.Timeline != 1 || at.OtherTimeline != (want.PrimaryTimeline != 1) {
			t.Errorf("%s: the third server is %+v", when, at)
		}
	}
	none("before the promotion", both, beside, twice)
	until(t, "the standbys have the shards", func() bool {
		return on(t, shards.Host{DSN: old.DSN("postgres")}, "select count(*) from pg_stat_replication where replay_lsn >= pg_current_wal_flush_lsn()")[0] == "2"
	})
	promote(t, next)
	rival("at an address", both, provision.Rival{Primary: second, PrimaryTimeline: 2, Address: first, Timeline: 1})
	rival("a replica", beside, provision.Rival{Primary: first, PrimaryTimeline: 1, Address: second, Timeline: 2, Replica: true})
	none("one server at two addresses", twice)
	checkComplete(t, both)

	on(t, shards.Host{DSN: old.DSN("postgres")}, "alter system set default_transaction_read_only = on")
	on(t, shards.Host{DSN: old.DSN("postgres")}, "select pg_reload_conf()")
	until(t, "a server that refuses writes is no second primary", func() bool { return len(provision.Rivals(t.Context(), both)) == 0 })
}
