package router_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// A router whose map is that of another cluster reaches no row of the one that is there, and says why.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	right, ctx := setup(t, options{})
	if _, err := onShard(t, right, 3).Exec(ctx, `select 1`); err != nil {
		t.Fatal(err)
	}
	wrong, _ := setup(t, options{on: right, config: func(c *shards.Config) { c.Cluster = "another" }})
	_, err := onShard(t, wrong, 3).Exec(ctx, `create table reached ()`)
	var identity *connect.IdentityError
	if !errors.As(err, &identity) || identity.Found != "test" || identity.Expected != "another" {
		t.Errorf("error %v, expected that the database belongs to cluster test", err)
	}
	if router.SafeToRetry(err) {
		t.Errorf("%v may be tried again, expected that it may not: it would fail again", err)
	}
}

// A router whose map has another strategy than the hosts record looks for no key in another shard, and names both.
func TestOtherStrategy(t *testing.T) {
	t.Parallel()
	right, ctx := setup(t, options{})
	if _, err := onShard(t, right, 3).Exec(ctx, `select 1`); err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: right.Map()}); err != nil {
		t.Fatal(err)
	}
	wrong, _ := setup(t, options{on: right, config: func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Hash} }})
	_, err := onShard(t, wrong, 3).Exec(ctx, `create table reached ()`)
	var identity *connect.IdentityError
	if !errors.As(err, &identity) || !strings.HasPrefix(identity.Found, "{by: modulo, of: ") || !strings.HasPrefix(identity.Expected, "{by: hash, ") {
		t.Errorf("error %v, expected the strategies of the host and of the map", err)
	}
	if router.SafeToRetry(err) {
		t.Errorf("%v may be tried again, expected that it may not: it would fail again", err)
	}
}

func onShard(t *testing.T, b *testBundle, n shards.Number) router.Shard {
	t.Helper()
	shard, err := b.ForShard(n)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}
