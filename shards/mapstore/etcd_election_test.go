package mapstore_test

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// startClusterWithUser starts three members that want a password, and returns a config for them.
func startClusterWithUser(t *testing.T) ([]*localetcd.Server, shards.Config) {
	t.Helper()
	members, endpoints := startCluster(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	noError(t, err)
	defer client.Close()
	addUser(t, client)
	return members, shards.Config{Cluster: cluster, Store: shards.Store{Kind: "etcd", Endpoints: endpoints, User: "kiloshard", Password: etcdPassword}}
}

// leads returns the member that leads, of members that all run. Etcd's metrics take no login.
func leads(t *testing.T, members []*localetcd.Server) *localetcd.Server {
	t.Helper()
	var found *localetcd.Server
	eventually(t, "a leader", func() bool {
		for _, member := range members {
			if metric(t, member, "etcd_server_is_leader") == "1" {
				found = member
				return true
			}
		}
		return false
	})
	return found
}

// TestEtcdElectionsWithAPassword kills the leader, and reads and changes the map at once, three times. A command opens a store of its own, so it
// logs in during the election, which fails all logins under way.
func TestEtcdElectionsWithAPassword(t *testing.T) {
	t.Parallel()
	members, cfg := startClusterWithUser(t)
	patient := func(o *mapstore.Options) { o.Limit = time.Minute }
	swap(t, open(t, cfg, patient), 0, 1)
	service := open(t, cfg, patient)
	checkEntry(t, load(t, service), 1, 1)
	for version := 1; version <= 3; version++ {
		led := leads(t, members)
		noError(t, led.Kill(newContext(t)))
		command := open(t, cfg, patient)
		checkEntry(t, load(t, command), version, version)
		swap(t, command, version, version+1)
		checkEntry(t, load(t, service), version+1, version+1)
		noError(t, led.Restart(newContext(t)))
	}
}

// TestEtcdLosesItsMajority kills two of three members. The error names all of them, and says which one answers, and that it knows no leader.
func TestEtcdLosesItsMajority(t *testing.T) {
	t.Parallel()
	members, cfg := startClusterWithUser(t)
	swap(t, open(t, cfg), 0, 1)
	service := open(t, cfg, func(o *mapstore.Options) { o.Limit = 10 * time.Second })
	checkEntry(t, load(t, service), 1, 1)
	left := leads(t, members)
	for _, member := range members {
		if member != left {
			noError(t, member.Kill(newContext(t)))
		}
	}
	command := open(t, cfg, func(o *mapstore.Options) { o.Limit = 10 * time.Second })
	for name, store := range map[string]mapstore.Store{"a command": command, "a service": service} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := store.Load(newContext(t))
			if err == nil {
				t.Fatal("one of three members returned the map")
			}
			for _, member := range members {
				want := member.Endpoint() + " fails: "
				if member == left {
					want = member.Endpoint() + " knows no leader"
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), etcdPassword) || strings.Contains(err.Error(), "RST_STREAM") {
				t.Errorf("the error shows the password, or words of gRPC: %v", err)
			}
		})
	}
}
