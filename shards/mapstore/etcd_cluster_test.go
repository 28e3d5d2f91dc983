package mapstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// startCluster starts three members, and returns their endpoints, too.
func startCluster(t *testing.T) (members []*localetcd.Server, endpoints []string) {
	t.Helper()
	var cfg localetcd.Config
	cfg.Command, cfg.Env = etcdCommand()
	members, err := localetcd.StartCluster(newContext(t), cfg, 3)
	noError(t, err)
	for _, member := range members {
		endpoints = append(endpoints, member.Endpoint())
		t.Cleanup(func() { noError(t, member.Stop()) })
	}
	return members, endpoints
}

func openCluster(t *testing.T, endpoints []string, change ...func(*mapstore.Options)) mapstore.Store {
	t.Helper()
	limit := func(o *mapstore.Options) { o.Limit = 20 * time.Second } // a third of it is lost on a member that hangs
	return open(t, shards.Config{Cluster: cluster, Store: shards.Store{Kind: "etcd", Endpoints: endpoints}}, append([]func(*mapstore.Options){limit}, change...)...)
}

// leader returns the member that leads.
func leader(ctx context.Context, members []*localetcd.Server) (*localetcd.Server, error) {
	for {
		for _, member := range members {
			leads, err := isLeader(ctx, member)
			if leads {
				return member, nil
			}
			if ctx.Err() != nil {
				return nil, errors.Join(ctx.Err(), err)
			}
		}
	}
}

func isLeader(ctx context.Context, member *localetcd.Server) (bool, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{member.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		return false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := client.Status(ctx, member.Endpoint())
	return err == nil && status.Header.MemberId == status.Leader, err
}

// TestEtcdClusterIsLinearizable kills the leader while fifty clients load and swap.
func TestEtcdClusterIsLinearizable(t *testing.T) {
	t.Parallel()
	pgtest.Long(t)
	members, endpoints := startCluster(t)
	checkLinearizable(t, func(ctx context.Context) error {
		led, err := leader(ctx, members)
		if err != nil {
			return err
		}
		return errors.Join(led.Kill(ctx), led.Restart(ctx))
	}, func(t *testing.T) mapstore.Store { return openCluster(t, endpoints) })
}

// TestEtcdClusterLosesItsLeader kills or pauses the leader: a watch gets the next version from another member.
func TestEtcdClusterLosesItsLeader(t *testing.T) {
	t.Parallel()
	members, endpoints := startCluster(t)
	s, other := openCluster(t, endpoints, func(o *mapstore.Options) { o.Limit = 3 * time.Second }), openCluster(t, endpoints)
	swap(t, other, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	version := 1
	next := func() {
		t.Helper()
		e := swap(t, other, version, version+1)
		checkEntry(t, w.entry(t), version+1, version+1)
		version = e.Map.Version()
	}
	rounds := 1
	if pgtest.Full() {
		rounds = 3
	}
	for range rounds {
		led, err := leader(newContext(t), members)
		noError(t, err)
		noError(t, led.Kill(newContext(t)))
		next()
		noError(t, led.Restart(newContext(t)))
		next()
	}
	led, err := leader(newContext(t), members)
	noError(t, err)
	noError(t, led.Pause())
	next()
	noError(t, led.Resume())
	next()

	for _, member := range members[1:] { // without a majority the map cannot change
		noError(t, member.Kill(newContext(t)))
	}
	hasty := openCluster(t, endpoints, func(o *mapstore.Options) { o.Limit = time.Second })
	if _, err := hasty.Swap(newContext(t), version, newChange(99)); err == nil {
		t.Error("one of three changed the map")
	}
	for err := error(nil); err == nil; { // each version is reported once, so it is not this one
		err = w.fails(t)
	}
	restarted := make(chan error, 1)
	go func() { restarted <- members[1].Restart(newContext(t)) }()
	noError(t, members[2].Restart(newContext(t)))
	noError(t, <-restarted)
	next()
	if all := versions(t, other); len(all) != version {
		t.Errorf("%d versions, want %d", len(all), version)
	}
}
