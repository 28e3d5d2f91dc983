package moves

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// In all parts but drain shards 0 and 1 begin on the first of two hosts, 2 and 3 on the second one. Shard 1 moves.
const (
	moves  = shards.Number(1)
	schema = "shard_00001"
)

// layout is where the shards of a cluster begin, and what is in those that move.
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
		return c, err
	}
	if len(hosts) < l.hosts {
		return c, fmt.Errorf("%d hosts: expected %d", len(hosts), l.hosts)
	}
	hosts = hosts[:l.hosts]
	if c.dir, err = os.MkdirTemp("", "kiloshard-bench-"); err != nil {
		return c, err
	}
	at := hosts
	if l.first {
		at = hosts[:1]
	}
	config := shards.Config{Cluster: "bench", Shards: l.shards, Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Placement: shards.Evenly(l.shards, at)}
	dsns := map[string]string{}
	for i, h := range hosts {
		variable := fmt.Sprintf("PG_%d", i) // a map must not contain passwords
		dsns[variable] = h.ConnString()
		config.Hosts = append(config.Hosts, shards.Host{Name: h.Name, DSN: "${" + variable + "}"})
	}
	c.store, err = mapstore.Open(ctx, shards.Config{Cluster: config.Cluster}, mapstore.Options{
		Path: filepath.Join(c.dir, "kiloshard.yaml"), Lookup: func(name string) (string, bool) { dsn, ok := dsns[name]; return dsn, ok },
	})
	if err != nil {
		return c, err
	}
	e, err := c.store.Swap(ctx, 0, mapstore.Change{Config: config, By: "bench"})
	if err != nil {
		return c, err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: e.Map}); err != nil {
		return c, err
	}
	if err := c.fill(ctx, e.Map); err != nil {
		return c, err
	}
	for _, h := range hosts {
		const wal = "SELECT count(pg_logical_emit_message(false, '', repeat('x', 1000))) FROM generate_series(1, %d)"
		if err := c.run(ctx, h, fmt.Sprintf(wal, cfg.Rows)); err != nil {
			return c, err
		}
	}
	for range 2 { // WAL of before the last but one is kept, to be written over
		if err := c.checkpoint(ctx, e.Map); err != nil {
			return c, err
		}
	}
	c.router, err = router.New(ctx, router.Config{Maps: mapstore.NewSource(mapstore.SourceConfig{Store: c.store})})
	return c, err
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

// fill makes the tables of all shards, and the rows of those that move. Those of callers have a writer above 0.
func (c *cluster) fill(ctx context.Context, m *shards.Map) error {
	for n := range m.All().All() {
		script := fmt.Sprintf("SET search_path = %s, pg_temp; CREATE TABLE beside (id bigint PRIMARY KEY DEFAULT next_id(), n int);\n", m.Schema(n))
		for t := range c.tables {
			script += fmt.Sprintf("CREATE TABLE %s (id bigint PRIMARY KEY DEFAULT next_id(), writer int NOT NULL, n int NOT NULL, note text);\n", table(t))
			if n == moves || c.first { // with IDs of the past, so that next_id() need not wait
				script += fmt.Sprintf("INSERT INTO %s SELECT i, 0, i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, %d) i;\n", table(t), c.rows/c.tables)
			}
		}
		if err := c.run(ctx, m.Host(n), script); err != nil {
			return err
		}
	}
	for _, h := range m.Hosts() {
		if err := c.run(ctx, h, "VACUUM ANALYZE"); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) connect(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return pgx.Connect(ctx, host.ConnString())
}

// checkpoint has each host write over WAL of before, as one does that has run for some time. To make a new file of 16 MB holds up all who commit.
func (c *cluster) checkpoint(ctx context.Context, m *shards.Map) error {
	for _, h := range m.Hosts() {
		if err := c.run(ctx, h, "CHECKPOINT"); err != nil {
			return err
		}
	}
	return nil
}

// run runs statements, each in its own transaction.
func (c *cluster) run(ctx context.Context, host shards.Host, script string) (err error) {
	conn, err := c.connect(ctx, host)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, statement := range strings.Split(script, ";") {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%.80s: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// home returns the map, the host of the shard that moves, and the other one.
func (c *cluster) home(ctx context.Context) (m *shards.Map, home, other shards.Host, err error) {
	e, err := c.store.Load(ctx)
	if err != nil {
		return nil, home, other, err
	}
	hosts := e.Map.Hosts()
	if e.Map.HostIndex(moves) == 0 {
		return e.Map, hosts[0], hosts[1], nil
	}
	return e.Map, hosts[1], hosts[0], nil
}
