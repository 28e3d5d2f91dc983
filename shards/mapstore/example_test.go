package mapstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A host gets more weight, and another change was faster.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "kiloshard.yaml")
	template := shards.Template(shards.Config{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err := os.WriteFile(path, template, 0o600); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	password := func(string) (string, bool) { return "secret", true } // os.LookupEnv
	cfg, err := shards.Load(path, password)
	if err != nil {
		log.Fatal(err)
	}
	store, err := mapstore.Open(ctx, cfg, mapstore.Options{Path: path, Lookup: password})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	now, err := store.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	next := now.Map.Config()
	next.Hosts = append([]shards.Host(nil), next.Hosts...)
	next.Hosts[0].Weight = 2
	made, err := store.Swap(ctx, now.Map.Version(), mapstore.Change{Config: next, By: "alice", Why: "pg-a has more memory"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", made.Map.Version())

	_, err = store.Swap(ctx, now.Map.Version(), mapstore.Change{Config: next, By: "bob"})
	var conflict *mapstore.ConflictError
	fmt.Println(errors.As(err, &conflict), err)

	for e, err := range store.History(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d by %s: %s\n", e.Map.Version(), e.By, e.Why)
	}
	// Output:
	// version 1
	// true the map is at version 1, not 0: somebody else changed it
	// 1 by alice: pg-a has more memory
	// 0 by hand:
}

// A service starts from its copy of the map while the store is down.
func ExampleSource() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	cfg := shards.Config{Cluster: "photos", Store: shards.Store{Kind: shards.StorePostgres, DSN: exampleDSN()}}
	store, err := mapstore.Open(ctx, cfg, mapstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	first := shards.Config{
		Cluster: "photos", Shards: 8, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Hosts:     []shards.Host{{Name: "pg-a", DSN: "postgres://photos@10.0.0.1/photos"}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 7}), Host: "pg-a"}},
	}
	if _, err := store.Swap(ctx, 0, mapstore.Change{Config: first, By: "alice", Why: "the first map"}); err != nil {
		log.Fatal(err)
	}

	source := mapstore.NewSource(mapstore.SourceConfig{Store: store, Cache: filepath.Join(dir, "map.yaml"), Lookup: os.LookupEnv})
	m, err := source.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, why := source.Stale()
	fmt.Println(m, "version", m.Version(), why)

	cfg.Store.DSN = "postgres://app@127.0.0.1:1/nobody_is_there"
	down, err := mapstore.Open(ctx, cfg, mapstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer down.Close()
	source = mapstore.NewSource(mapstore.SourceConfig{Store: down, Cache: filepath.Join(dir, "map.yaml"), Lookup: os.LookupEnv})
	if m, err = source.Load(ctx); err != nil {
		log.Fatal(err)
	}
	_, why = source.Stale()
	fmt.Println(m, "version", m.Version(), "from the copy:", why != nil)
	// Output:
	// photos: 8 shards on 1 host version 1 <nil>
	// photos: 8 shards on 1 host version 1 from the copy: true
}

// exampleDSN returns the DSN of a control database.
func exampleDSN() string {
	dsn, err := server.CreateDatabase(context.Background(), fmt.Sprintf("mapstore_%d_%d", os.Getpid(), databases.Add(1)))
	if err != nil {
		log.Fatal(err)
	}
	return dsn
}
