package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/shards"
)

//go:embed later/*.sql
var laterFiles embed.FS

const shardCount = 64

// first returns the map of the new cluster.
func (h *hosts) first() shards.Config {
	cfg := shards.Config{
		Cluster: "photos", Shards: shardCount, Epoch: h.epoch,
		Strategy: shards.Strategy{By: shards.Directory, Of: shardCount, Allocate: shards.Allocation{By: shards.Weighted}},
		Types:    []shards.ObjectType{{Name: "board", Number: 1}},
		Hosts:    []shards.Host{{Name: "pg-a", DSN: h.dsnA(database)}, {Name: "pg-b", DSN: h.dsnB()}},
	}
	cfg.Placement = shards.Evenly(shardCount, cfg.Hosts)
	return cfg
}

// writeFiles writes what an operator has: the config, which says where the map is, the first map, and the migrations.
func (t *try) writeFiles() error {
	config := fmt.Sprintf("cluster: photos\nstore: {kind: postgres, dsn: %q}\nmigrations: ./migrations\n", t.hosts.dsnA(controlDatabase))
	t.edited = t.hosts.first()
	return errors.Join(
		os.WriteFile(t.path("kiloshard.yaml"), []byte(config), 0o600),
		t.writeMap(t.edited),
		os.CopyFS(t.path("migrations"), migrations.Files),
	)
}

// writeMap writes a map for kiloshard map to read.
func (t *try) writeMap(cfg shards.Config) error {
	text, err := cfg.YAML()
	if err != nil {
		return err
	}
	return os.WriteFile(t.path("map.yaml"), text, 0o600)
}

// addMigrations puts the files of the next release beside those of the first.
func (t *try) addMigrations() error {
	later, err := fs.Sub(laterFiles, "later")
	if err != nil {
		return err
	}
	return os.CopyFS(t.path("migrations"), later)
}
