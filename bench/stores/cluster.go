package stores

import (
	"context"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// pin is the object of the benchmark.
type pin struct {
	Details string `json:"details"`
	Link    string `json:"link"`
	Likes   int    `json:"likes"`
}

var (
	tables     = objects.Tables{Types: []string{"pin"}}
	definition = entities.Definition{Indexes: []entities.IndexDefinition{
		{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}},
	}}
)

// bench is the state of one [Run].
type bench struct {
	cfg      Config
	m        *shards.Map
	router   *router.Router
	pools    []*pgxpool.Pool // of the hosts, with an empty search_path
	counters [2]counter      // of messages: ours, by hand
	report   Report
}

// open creates the shards, and opens the connections of both sides.
func (b *bench) open(ctx context.Context) error {
	b.cfg.Progress("making shards")
	if err := b.create(ctx); err != nil {
		return err
	}
	var err error
	if b.router, err = b.openRouter(ctx); err != nil {
		return err
	}
	for _, host := range b.m.Hosts() {
		cfg, err := pgxpool.ParseConfig(host.ConnString())
		if err != nil {
			return err
		}
		cfg.MaxConns = int32(b.cfg.Callers)
		cfg.ConnConfig.DialFunc = b.counters[1].dial
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return err
		}
		b.pools = append(b.pools, pool)
	}
	return nil
}

func (b *bench) close() {
	if b.router != nil {
		b.router.Close()
	}
	for _, pool := range b.pools {
		pool.Close()
	}
}

func (b *bench) openRouter(ctx context.Context) (*router.Router, error) {
	return router.New(ctx, router.Config{Map: b.m, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = int32(b.cfg.Callers)
		cfg.ConnConfig.DialFunc = b.counters[0].dial
		return nil
	}})
}

func (b *bench) create(ctx context.Context) error {
	hosts, err := b.cfg.NewHosts(ctx)
	if err != nil {
		return err
	}
	config := server.Config(b.cfg.Shards, hosts)
	config.Types = []shards.ObjectType{{Name: "pin", Number: 1}}
	if b.m, err = config.Map(); err != nil {
		return err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: b.m}); err != nil {
		return err
	}
	_, err = migrate.Up(ctx, migrate.Config{Map: b.m, Files: fstest.MapFS{
		"001_objects.sql": {Data: []byte(tables.Migration())}, "002_entities.sql": {Data: []byte(definition.Migration())},
	}})
	return err
}
