package mapstore_test

import (
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// Etcd forgets a user's token after a while in which it was not used, and all tokens when it restarts: store and watch
// go on with another one.
func TestEtcdForgetsTokens(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{TokenTTL: time.Second})
	client := etcdClient(t, server)
	addUser(t, client)
	cfg := shards.Config{Cluster: cluster, Store: shards.Store{
		Kind: "etcd", Endpoints: []string{server.Endpoint()}, User: "kiloshard", Password: etcdPassword,
	}}
	rarely := func(o *mapstore.Options) { o.Poll = time.Hour }
	watched, other := open(t, cfg, rarely), open(t, cfg)
	swap(t, other, 0, 1)
	w := watch(t, watched, 0)
	checkEntry(t, w.entry(t), 1, 1)
	version := 1
	next := func() {
		t.Helper()
		swap(t, other, version, version+1)
		version++
		checkEntry(t, w.entry(t), version, version)
		checkEntry(t, load(t, watched), version, version)
	}
	outliveToken(t, client)
	next()
	noError(t, server.Restart(newContext(t)))
	next()
}

// outliveToken waits until etcd has forgotten a new token. Each use makes the token last longer.
func outliveToken(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx := newContext(t)
	answer, err := client.Authenticate(ctx, "kiloshard", etcdPassword)
	noError(t, err)
	with := metadata.AppendToOutgoingContext(ctx, "token", answer.Token)
	for pause := 2 * time.Second; ; pause *= 2 {
		time.Sleep(pause)
		_, err := client.Get(with, "/kiloshard/photos/map")
		if errors.Is(err, rpctypes.ErrInvalidAuthToken) {
			return
		}
		noError(t, err)
	}
}
