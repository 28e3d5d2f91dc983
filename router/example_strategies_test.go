package router_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// exampleStrategy returns a router by a strategy over 64 shards.
func exampleStrategy(ctx context.Context, s shards.Strategy) *router.Router {
	config := shards.Config{
		Cluster: "test", Shards: shardCount, Epoch: epoch, Strategy: s,
		Hosts:     []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: shardCount - 1}), Host: "pg-a"}},
	}
	m, err := config.Map()
	if err != nil {
		log.Fatal(err)
	}
	if m.Allocates() { // as kiloshard create does
		if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
			log.Fatal(err)
		}
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: patient})
	if err != nil {
		log.Fatal(err)
	}
	return r
}

// With modulo, the default, keys are numbers.
func ExampleRouter_ForKey() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{By: shards.Modulo})
	defer r.Close()
	shard, err := r.ForKey(ctx, shards.NumberKey(31341))
	fmt.Println(shard, err)
	// Output: shard 45 (shard_00045 on pg-a) <nil>
}

// With a hash, a key is any text.
func ExampleRouter_ForKey_text() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{By: shards.Hash, Hash: shards.MD5})
	defer r.Close()
	shard, err := r.ForKey(ctx, shards.TextKey("alice@example.org"))
	fmt.Println(shard, err)
	// Output: shard 22 (shard_00022 on pg-a) <nil>
}

// With ranges, neighboring keys are in one shard, and keys in no range have none.
func ExampleRouter_Explain() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{
		{From: shards.NumberKey(1), Shard: 0},
		{From: shards.NumberKey(1_000_000), Shard: 1},
	}})
	defer r.Close()
	for _, key := range []int64{999_999, 1_000_000, 0} {
		path, err := r.Explain(ctx, shards.NumberKey(key))
		if errors.Is(err, shards.ErrNoShard) {
			fmt.Println(err)
			continue
		}
		fmt.Println(path)
	}
	// Output:
	// key 999999: range: 999999 is in the range from 1 until 1000000: shard 0 (shard_00000 on pg-a)
	// key 1000000: range: 1000000 is in the range from 1000000 on: shard 1 (shard_00001 on pg-a)
	// key 0 is in no range: no such shard
}

// With a directory, a new user is given a shard, which is remembered.
func ExampleRouter_ForNew() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{
		By:       shards.Directory,
		Allocate: shards.Allocation{By: shards.LeastUsed, Capacity: 100_000},
	})
	defer r.Close()
	const email = "alice@example.org"

	_, err := r.ForKey(ctx, shards.TextKey(email))
	fmt.Println("before:", err)
	given, err := r.ForNew(ctx, shards.TextKey(email))
	if err != nil {
		log.Fatal(err)
	}
	found, err := r.ForKey(ctx, shards.TextKey(email))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same afterwards:", given == found)
	// Output:
	// before: key "alice@example.org" has no entry in the directory: no such shard
	// the same afterwards: true
}

// Where keys are IDs, a new user gets any open shard, and the ID that it makes is the user's number from then on.
func ExampleRouter_ForNew_id() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{By: shards.ByID})
	defer r.Close()

	given, err := r.NewShard(ctx)
	if err != nil {
		log.Fatal(err)
	}
	user, err := given.NextID(ctx) // or: insert into users … returning id
	if err != nil {
		log.Fatal(err)
	}
	found, err := r.ForKey(ctx, shards.NumberKey(int64(user)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same afterwards:", given == found)
	// Output: the same afterwards: true
}

// A user who was in shard 45 by modulo is moved to another one by hand.
func ExampleRouter_Assign() {
	ctx := context.Background()
	r := exampleStrategy(ctx, shards.Strategy{By: shards.Directory, Otherwise: &shards.Strategy{By: shards.Modulo}})
	defer r.Close()
	user := shards.NumberKey(31341)

	if err := r.Assign(ctx, user, 45, 7); err != nil { // once its rows are in shard 7
		log.Fatal(err)
	}
	path, err := r.Explain(ctx, user)
	fmt.Println(path, err)
	fmt.Println(r.Assign(ctx, user, 45, 8))
	// Output:
	// key 31341: directory: entry of shard_00033, cached: shard 7 (shard_00007 on pg-a) <nil>
	// key 31341 is in shard 7, expected 45: the key is in another shard
}
