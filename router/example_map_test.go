package router_test

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/kiloshard/kiloshard/shards"
)

// A handle goes to wherever its shard lives when it is used.
func ExampleRouter_SetMap() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		panic(err)
	}
	fmt.Println(shard)

	config := r.Map().Config() // as a mover of shards would change it
	config.Hosts = append(config.Hosts, shards.Host{Name: "pg-b", DSN: routertest.ExampleDatabase(ctx)})
	config.Placement = []shards.Placement{
		{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 6}), Host: "pg-a"},
		{Shards: shards.SetOfRanges(shards.Range{First: 7, Last: shardCount - 1}), Host: "pg-b"},
	}
	config.Version++
	next, err := config.Map()
	if err != nil {
		panic(err)
	}
	if err := r.SetMap(next); err != nil {
		panic(err)
	}
	var title string
	if err := shard.QueryRow(ctx, `select title from photos where id = $1`, 1).Scan(&title); err != nil {
		panic(err)
	}
	fmt.Println(shard, title)
	fmt.Println("version", r.MapState().Version)
	// Output:
	// shard 7 (shard_00007 on pg-a)
	// shard 7 (shard_00007 on pg-b) of shard 7
	// version 1
}
