package moves

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// In all parts but drain shards 0 and 1 begin on the first of two hosts, 2 and 3 on the second one. Shard 1 moves.
const (
	moved  = shards.Number(1)
	schema = "shard_00001"
)

// leastRows is the least number of rows of each table.
const leastRows = 100

// layout describes the shards of a cluster when it starts.
type layout struct {
	shards, hosts int
	first         bool // all shards begin on the first host, and all move
	tables        int  // of each shard
	rows          int  // of each shard that moves, in all tables
}

// cluster is some hosts, with the map in a file.
type cluster struct {
	layout
	store  mapstore.Store
	router *router.Router
	dir    string
}

func start(ctx context.Context, cfg Config, l layout) (_ *cluster, err error) {
	c := &cluster{layout: l}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	hosts, err := cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	if len(hosts) < l.hosts {
		return nil, fmt.Errorf("%d hosts: expected %d", len(hosts), l.hosts)
	}
	m, err := c.create(ctx, hosts[:l.hosts])
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, m); err != nil {
		return nil, err
	}
	for _, h := range m.Hosts() {
		const wal = "SELECT count(pg_logical_emit_message(false, '', repeat('x', 1000))) FROM generate_series(1, %d)"
		if err := server.Exec(ctx, h, fmt.Sprintf(wal, cfg.Rows)); err != nil {
			return nil, err
		}
	}
	for range 2 { // Postgres keeps the WAL from before the last but one, to write over it
		if err := checkpoint(ctx, m); err != nil {
			return nil, err
		}
	}
	c.router, err = router.New(ctx, router.Config{Maps: mapstore.NewSource(mapstore.SourceConfig{Store: c.store})})
	return c, err
}

// create opens the store and creates the shards.
func (c *cluster) create(ctx context.Context, hosts []shards.Host) (m *shards.Map, err error) {
	config := server.Config(c.shards, hosts)
	if c.first {
		config.Placement = shards.Evenly(c.shards, hosts[:1])
	}
	config.Hosts = nil
	dsns := map[string]string{}
	for i, h := range hosts {
		variable := fmt.Sprintf("PG_%d", i) // a map must not contain passwords
		dsns[variable] = h.ConnString()
		config.Hosts = append(config.Hosts, shards.Host{Name: h.Name, DSN: "${" + variable + "}"})
	}
	if c.dir, err = os.MkdirTemp("", "kiloshard-bench-"); err != nil {
		return nil, err
	}
	c.store, err = mapstore.Open(ctx, shards.Config{Cluster: config.Cluster}, mapstore.Options{
		Path: filepath.Join(c.dir, "kiloshard.yaml"), Lookup: func(name string) (string, bool) { dsn, ok := dsns[name]; return dsn, ok },
	})
	if err != nil {
		return nil, err
	}
	e, err := c.store.Swap(ctx, 0, mapstore.Change{Config: config, By: "bench"})
	if err != nil {
		return nil, err
	}
	_, err = provision.Create(ctx, provision.CreateConfig{Map: e.Map})
	return e.Map, err
}

func (c *cluster) close() {
	if c.router != nil {
		c.router.Close()
	}
	if c.store != nil {
		_ = c.store.Close() // its content is not needed
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // likewise
	}
}

func table(n int) string { return fmt.Sprintf("items_%d", n) }

// fill makes the tables of all shards, and the rows of those that move. Rows of callers have a writer above 0.
func (c *cluster) fill(ctx context.Context, m *shards.Map) error {
	for n := range m.All().All() {
		script := []string{
			fmt.Sprintf("SET search_path = %s, pg_temp", m.Schema(n)),
			"CREATE TABLE beside (id bigint PRIMARY KEY DEFAULT next_id(), n int)",
		}
		for t := range c.tables {
			script = append(script, fmt.Sprintf("CREATE TABLE %s (id bigint PRIMARY KEY DEFAULT next_id(), writer int NOT NULL, n int NOT NULL, note text)", table(t)))
			if n == moved || c.first { // with IDs of the past, so that next_id() need not wait
				const rows = "INSERT INTO %s SELECT i, 0, i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, %d) i"
				script = append(script, fmt.Sprintf(rows, table(t), c.rows/c.tables))
			}
		}
		if err := server.Exec(ctx, m.Host(n), script...); err != nil {
			return err
		}
	}
	for _, h := range m.Hosts() {
		if err := server.Exec(ctx, h, "VACUUM ANALYZE"); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint makes each host reuse old WAL files, as one that has run for some time does: creating a new file of 16 MB
// delays every commit.
func checkpoint(ctx context.Context, m *shards.Map) error {
	for _, h := range m.Hosts() {
		if err := server.Checkpoint(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// placement returns the map, the host of the shard that moves, and the other host.
func (c *cluster) placement(ctx context.Context) (m *shards.Map, source, target shards.Host, err error) {
	e, err := c.store.Load(ctx)
	if err != nil {
		return nil, source, target, err
	}
	hosts := e.Map.Hosts()
	if e.Map.HostIndex(moved) == 0 {
		return e.Map, hosts[0], hosts[1], nil
	}
	return e.Map, hosts[1], hosts[0], nil
}
