package routes

import (
	"context"
	"fmt"
	"slices"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
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

// newCluster creates and migrates shards, evenly on new hosts, and ends with a checkpoint.
func (b *bench) newCluster(ctx context.Context, count, hostCount int) (*shards.Map, error) {
	hosts, err := b.cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	if len(hosts) < hostCount {
		return nil, fmt.Errorf("%d hosts; expected %d", len(hosts), hostCount)
	}
	m, err := mapOf(count, hosts[:hostCount])
	if err != nil {
		return nil, err
	}
	if err := b.describe(ctx, hosts[0]); err != nil {
		return nil, err
	}
	if err := makeShards(ctx, m); err != nil {
		return nil, err
	}
	return m, stats.Together(hostCount, func(i int) error {
		return server.Checkpoint(ctx, hosts[i]) // so that no side pays for writing the new tables to disk
	})
}

// makeShards creates the shards of a map, migrates them and fills their tables.
func makeShards(ctx context.Context, m *shards.Map) error {
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return err
	}
	if _, err := migrate.Run(ctx, migrate.Config{Map: m, Files: photosFiles}); err != nil {
		return err
	}
	return stats.Together(len(m.Hosts()), func(i int) error { return server.Exec(ctx, m.Hosts()[i], photosLoop) })
}

func mapOf(count int, hosts []shards.Host) (*shards.Map, error) {
	return shards.Config{
		Cluster: "bench", Shards: count, Epoch: server.Epoch, Layout: server.Layout, Hosts: hosts, Placement: shards.Evenly(count, hosts),
	}.Map()
}

// describe adds the server's version and settings to the report.
func (b *bench) describe(ctx context.Context, host shards.Host) error {
	if b.report.Server != "" {
		return nil
	}
	conns, err := server.Open(ctx, host, 1)
	if err != nil {
		return err
	}
	defer server.Close(conns)
	const query = `SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('fsync')::bool`
	return conns[0].QueryRow(ctx, query).Scan(&b.report.Server, &b.report.Fsync)
}

// The application_name of each side's sessions.
const (
	oursName  = "kiloshard bench route ours"
	plainName = "kiloshard bench route plain"
)

// openRouter opens a router.
func openRouter(ctx context.Context, m *shards.Map) (*router.Router, error) {
	return openRouterWith(ctx, m, router.Config{})
}

// silentFor is how long a host may be silent before a router takes it for down: no host fails here, and one that has to start many
// sessions at once on a busy machine may not answer a probe in time.
const silentFor = 30 * time.Second

// openRouterWith opens a router with a config whose map and failover it sets.
func openRouterWith(ctx context.Context, m *shards.Map, cfg router.Config) (*router.Router, error) {
	hosts := slices.Clone(m.Hosts())
	for i, host := range hosts {
		hosts[i].DSN = poolDSN(host.ConnString(), oursName, nil)
	}
	m, err := server.On(m, hosts)
	if err != nil {
		return nil, err
	}
	cfg.Map, cfg.Failover.FailAfter = m, silentFor
	return router.New(ctx, cfg)
}

// openPlain opens a pgxpool to a host, with an application_name.
func openPlain(ctx context.Context, host shards.Host, name string, settings ...string) (*pgxpool.Pool, error) {
	return pgxpool.New(ctx, poolDSN(host.ConnString(), name, settings))
}

// openPlainWith opens a pgxpool with the given number of connections.
func openPlainWith(ctx context.Context, host shards.Host, conns int) (*pgxpool.Pool, error) {
	return openPlain(ctx, host, plainName, "pool_max_conns", fmt.Sprint(conns))
}

func poolDSN(text, name string, settings []string) string {
	text = dsn.With(text, "application_name", name, "pool_max_conns", fmt.Sprint(connsPerHost))
	return dsn.With(text, settings...)
}

// forKey asks the router for the shard of a key, as all parts but one do.
func forKey(ctx context.Context, r *router.Router, key int64) (router.Shard, error) {
	return r.ForKey(ctx, shards.NumberKey(key))
}

// forID asks the router for the shard of an ID.
func forID(_ context.Context, r *router.Router, id shards.ID) (router.Shard, error) {
	return r.ForID(id)
}
