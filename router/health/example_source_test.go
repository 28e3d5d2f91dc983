package health_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A service starts while its store is down, and says that it goes by the copy of the last map.
func Example_copyOfTheMap() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "map.yaml") // that an earlier start has left
	const text = `
cluster: photos
version: 7
shards: 64
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: "postgres://app@127.0.0.1:1/photos"}
placement:
  - {shards: 0-63, host: pg-a}
`
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	store, err := mapstore.Open(ctx, shards.Config{
		Cluster: "photos", Store: shards.Store{Kind: shards.StorePostgres, DSN: "postgres://app@127.0.0.1:1/maps"},
	}, mapstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	source := mapstore.NewSource(mapstore.SourceConfig{Store: store, Cache: copied})
	r, err := router.New(ctx, router.Config{Maps: source})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	report, err := health.New(r, health.Config{}).Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", report.MapVersion, "stale:", report.MapStale)
	// Output: version 7 stale: true
}
