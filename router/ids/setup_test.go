package ids_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m), goleak.IgnoreTopFunction("os/signal.loop")))
}

// testLimit bounds whatever a test waits for.
const testLimit = 5 * time.Minute

// allKinds are generators of every kind on two hosts.
func allKinds() []shards.Generator {
	return []shards.Generator{
		{Kind: shards.Tickets, Names: []string{"photo", "account"}, Hosts: []string{"pg-a", "pg-b"}},
		{Kind: shards.Interleaved, Names: []string{"order"}, Of: 64},
		{Kind: shards.CentralSequence, Names: []string{"message"}, Hosts: []string{"pg-a"}},
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-b"}},
		{Kind: shards.UUIDv4, Names: []string{"session"}},
		{Kind: shards.UUIDv7, Names: []string{"event"}},
	}
}

// bundle is a cluster of 8 shards on two hosts with generators of every kind.
type bundle struct {
	m      *shards.Map
	router *router.Router
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupOn(t, shardtest.Hosts(t, 2))
}

func setupOn(t *testing.T, hosts []shards.Host) *bundle {
	t.Helper()
	c := shardtest.MapConfig(8, hosts)
	c.Generators = allKinds()
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	r, err := router.New(context.Background(), router.Config{Map: m, Failover: router.Failover{FailAfter: testLimit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &bundle{m: m, router: r}
}

func (b *bundle) shard(t *testing.T, n shards.Number) router.Shard {
	t.Helper()
	shard, err := b.router.ForShard(n)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

// collection is IDs from many goroutines.
type collection[T comparable] struct {
	mu  sync.Mutex
	ids []T
}

func (c *collection[T]) add(ids ...T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, ids...)
}

// checkUnique checks that no ID was given twice, and that there are enough of them to say anything.
func (c *collection[T]) checkUnique(t *testing.T, least int) {
	t.Helper()
	seen := make(map[T]bool, len(c.ids))
	for _, id := range c.ids {
		if seen[id] {
			t.Errorf("ID %v was given twice", id)
		}
		seen[id] = true
	}
	if len(c.ids) < least {
		t.Errorf("%d IDs were made, expected at least %d", len(c.ids), least)
	}
}

func checkRising(t *testing.T, ids []shards.ID) {
	t.Helper()
	if !slices.IsSorted(ids) {
		t.Errorf("the IDs do not rise: %v", ids)
	}
}
