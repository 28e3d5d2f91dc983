package migrate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// One file is run in all shards of a cluster, and its events are counted.
func ExampleRun() {
	ctx := context.Background()
	m, stop := exampleCluster(ctx, 8)
	defer stop()

	counts := map[migrate.EventKind]int{}
	report, err := migrate.Run(ctx, migrate.Config{
		Map: m,
		Files: fstest.MapFS{
			"001_photos.sql": {Data: []byte("create table photos (id bigint primary key default next_id(), title text not null);")},
		},
		Events: func(e migrate.Event) { counts[e.Kind]++ },
	})
	if err != nil {
		log.Print(err) // a shards.PartialError, which says what is done and what is not
	}
	fmt.Println("at version", report.Target, "now: shards", report.Done)
	fmt.Println(counts[migrate.ShardDone], "done,", counts[migrate.ShardFailed], "failed")
	// Output:
	// at version 1 now: shards 0-7
	// 8 done, 0 failed
}

// exampleCluster returns the map of so many new shards on a server of their own.
func exampleCluster(ctx context.Context, count int) (m *shards.Map, stop func()) {
	server, err := localpg.Start(ctx, shardtest.ServerConfig())
	if err != nil {
		panic(err)
	}
	dsn, err := server.CreateDatabase(ctx, fmt.Sprintf("migrate_example_%d", os.Getpid()))
	if err == nil {
		m, err = shardtest.MapConfig(count, []shards.Host{{Name: "pg-a", DSN: dsn}}).Map()
	}
	if err == nil {
		_, err = provision.Create(ctx, provision.CreateConfig{Map: m})
	}
	if err != nil {
		panic(err)
	}
	return m, func() {
		if err := server.Stop(ctx); err != nil {
			log.Print(err)
		}
	}
}
