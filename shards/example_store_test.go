package shards_test

import (
	"fmt"
	"log"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// This shows which maps may follow each other in a cluster that has rows.
func ExampleCheckChange() {
	config := shards.Config{
		Cluster: "photos", Shards: 1024, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Hosts:     []shards.Host{{Name: "pg-a", DSN: "host=10.0.0.1"}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 1023}), Host: "pg-a"}},
	}
	now, err := config.Map()
	if err != nil {
		log.Fatal(err)
	}

	config.Shards = 2048
	config.Placement = shards.Evenly(2048, config.Hosts)
	next, err := config.Map()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shards.CheckChange(now, next))

	config.Strategy.Of = 1024 // keys stay where they are; callers name the new shards
	if next, err = config.Map(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(shards.CheckChange(now, next))
	// Output:
	// strategy.of: from 1024 to 2048: nearly every key would be in another shard; of: 1024 keeps them where they are
	// <nil>
}

// If a database keeps the map, kiloshard.yaml only says which database.
func ExampleConfig_Remote() {
	const text = `
cluster: photos
store: {kind: postgres, dsn: "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard"}
migrations: ./migrations
`
	config, err := shards.Parse("kiloshard.yaml", []byte(text), func(string) (string, bool) { return "secret", true })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.Remote(), config.Store)
	// Output: true postgres 10.0.0.9/kiloshard
}
