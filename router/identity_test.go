package router_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
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

func onShard(t *testing.T, b *testBundle, n shards.Number) router.Shard {
	t.Helper()
	shard, err := b.ForShard(n)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}
