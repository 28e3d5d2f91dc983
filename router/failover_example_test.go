package router_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// A host that does not answer costs its calls nothing but an error, which tells that they can be made again later.
func ExampleDownError() {
	ctx := context.Background()
	config := shards.Config{
		Cluster: "test",
		Shards:  2,
		Epoch:   epoch,
		Hosts: []shards.Host{
			{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)},
			{Name: "pg-b", DSN: "postgres://app@127.0.0.1:1,127.0.0.1:2/app"}, // a primary and its standby, both down
		},
		Placement: []shards.Placement{
			{Shards: shards.SetOf(0), Host: "pg-a"},
			{Shards: shards.SetOf(1), Host: "pg-b"},
		},
	}
	m, err := config.Map()
	if err != nil {
		log.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{
		Map:      m,
		Failover: router.Failover{FailAfter: 5 * time.Second, Wait: 100 * time.Millisecond},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	for n := range shards.Number(2) {
		shard, err := r.ForShard(n)
		if err != nil {
			log.Fatal(err)
		}
		var one int
		err = shard.QueryRow(ctx, `select 1`).Scan(&one)
		var down *router.DownError
		fmt.Println(shard.Host().Name, "is down:", errors.As(err, &down), "- safe to retry:", router.SafeToRetry(err))
	}
	for _, host := range r.Stats() {
		fmt.Println(host.Host, "has its breaker", host.Breaker)
	}
	// Output:
	// pg-a is down: false - safe to retry: false
	// pg-b is down: true - safe to retry: true
	// pg-a has its breaker closed
	// pg-b has its breaker open
}
