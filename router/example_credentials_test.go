package router_test

import (
	"context"
	"fmt"
	"net/url"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Passwords come from a vault, for each connection anew.
func ExampleConfig_credentials() {
	ctx := context.Background()
	dsn, err := url.Parse(routertest.ExampleDatabase(ctx))
	if err != nil {
		panic(err)
	}
	password, _ := dsn.User.Password()
	dsn.User = url.User(dsn.User.Username())
	hosts := []shards.Host{{Name: "pg-a", DSN: dsn.String()}}
	m, err := shards.Config{Cluster: "test", Shards: shardCount, Epoch: epoch, Hosts: hosts, Placement: shards.Evenly(shardCount, hosts)}.Map()
	if err != nil {
		panic(err)
	}
	vault := map[string]string{"pg-a": password}

	r, err := router.New(ctx, router.Config{
		Map: m,
		Credentials: func(_ context.Context, host shards.Host) (shards.Credentials, error) {
			return shards.Credentials{Password: vault[host.Name]}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		panic(err)
	}
	var title string
	if err := shard.QueryRow(ctx, "select title from photos where id = 1").Scan(&title); err != nil {
		panic(err)
	}
	fmt.Println(title)
	fmt.Println(r)
	// Output:
	// of shard 7
	// router of test: 64 shards on 1 host
}
