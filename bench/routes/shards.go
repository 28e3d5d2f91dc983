package routes

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

const (
	// fewShards is the number of shards in parts with few shards.
	fewShards = 16

	// photosPerShard is below the number of rows at which autovacuum analyzes a table.
	photosPerShard = 40
)

// photosFiles creates the table of photos. The hosts are migrated, so they have everything that migrations leave there.
var photosFiles = fstest.MapFS{"001_photos.sql": {Data: []byte(server.PhotosTable + ";\n")}}

// photosLoop fills the table of photos in each shard of a host, with the shard's number as their owner, and creates a table
// for inserts in the first shards.
var photosLoop = fmt.Sprintf(`
	DO $loop$ DECLARE n int; schema text; done int := 0; BEGIN
		SET client_min_messages = warning; SET synchronous_commit = off;
		FOR n, schema IN SELECT right(nspname, 5)::int, nspname FROM pg_namespace WHERE nspname ~ '^shard_\d{5}$' ORDER BY 1 LOOP
			EXECUTE format('INSERT INTO %%I.photos SELECT id, $1, ''photo '' || id FROM generate_series(1, %d) AS id', schema) USING n;
			IF n < %d THEN
				EXECUTE format('CREATE TABLE %%1$I.notes (id bigint PRIMARY KEY DEFAULT %%1$I.next_id(), '
					'author bigint NOT NULL, body text NOT NULL)', schema);
			END IF;
			done := done + 1;
			IF done %% 64 = 0 THEN COMMIT; END IF;
		END LOOP;
	END $loop$`, photosPerShard, fewShards)

// createShards creates and migrates the shards of a map, and fills their tables. It ends with a checkpoint, so that no side
// pays for writing the new tables to disk.
func createShards(ctx context.Context, m *shards.Map) error {
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return err
	}
	if _, err := migrate.Run(ctx, migrate.Config{Map: m, Files: photosFiles}); err != nil {
		return err
	}
	return harness.Together(len(m.Hosts()), func(i int) error {
		if err := server.Exec(ctx, m.Hosts()[i], photosLoop); err != nil {
			return err
		}
		return server.Checkpoint(ctx, m.Hosts()[i])
	})
}
