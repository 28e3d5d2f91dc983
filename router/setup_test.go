package router_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

const (
	shardCount = routertest.Shards
	testLimit  = routertest.Limit // for one test
)

// patient has no host be down because the machine is busy and its server is silent for a while. One that refuses connections
// is found down at once all the same.
var patient = router.Failover{FailAfter: testLimit}

// modes are the values of default_query_exec_mode that a router takes.
var modes = []string{"cache_statement", "exec"}

func execMode(mode string) map[string]string {
	return map[string]string{"default_query_exec_mode": mode}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// options say what a test's cluster is like. The zero value is one host with four connections.
type options struct {
	hosts      int
	conns      int32
	dsn        map[string]string // settings in each DSN, such as default_query_exec_mode
	statements int
	alone      bool // NoGroups
	searchPath []string
	address    string // instead of the server's, such as that of a proxy
	pool       func(cfg *pgxpool.Config)
	config     func(*shards.Config) // changes the map; shards of the template get what a directory needs
	cache      int                  // DirectoryCache
	maxAge     time.Duration        // DirectoryMaxAge
	tracers    []pgx.QueryTracer
	logger     *slog.Logger
	slow       time.Duration           // SlowStatement
	failAfter  time.Duration           // Failover.FailAfter
	as         func(dsn string) string // changes each DSN
	on         *testBundle             // whose databases to use; each test has its own if nil
}

// testBundle is a cluster of 64 shards, each with its own row 1 in the table photos, and a router over it.
type testBundle struct {
	*router.Router
	plain *pgxpool.Pool // on the first host, straight to the server
	dsns  []string      // of the hosts, straight to the server
}

func setup(t testing.TB, opts options) (*testBundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)

	var dsns []string
	if opts.on != nil {
		dsns = opts.on.dsns
	} else {
		for range max(opts.hosts, 1) {
			dsns = append(dsns, routertest.CreateDatabase(ctx, t))
		}
	}
	config := shards.Config{
		Cluster:    "test",
		Shards:     shardCount,
		Epoch:      epoch,
		SearchPath: opts.searchPath,
	}
	for i, dsn := range dsns {
		name := fmt.Sprintf("pg-%c", 'a'+i)
		config.Hosts = append(config.Hosts, shards.Host{Name: name, DSN: opts.apply(t, dsn)})
		low, high := shardCount*i/len(dsns), shardCount*(i+1)/len(dsns)-1
		config.Placement = append(config.Placement, shards.Placement{
			Shards: shards.SetOfRanges(shards.Range{First: shards.Number(low), Last: shards.Number(high)}), Host: name,
		})
	}
	if opts.config != nil {
		opts.config(&config)
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	if m.Allocates() && opts.on == nil {
		if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := router.New(ctx, router.Config{
		Map:             m,
		Statements:      opts.statements,
		DirectoryCache:  opts.cache,
		DirectoryMaxAge: opts.maxAge,
		NoGroups:        opts.alone,
		Tracers:         opts.tracers,
		Logger:          opts.logger,
		SlowStatement:   opts.slow,
		Failover:        router.Failover{FailAfter: cmp.Or(opts.failAfter, patient.FailAfter)},
		Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
			cfg.MaxConns = max(opts.conns, 1)
			if opts.conns == 0 {
				cfg.MaxConns = 4
			}
			if opts.pool != nil {
				opts.pool(cfg)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &testBundle{Router: r, plain: openPlain(ctx, t, dsns[0]), dsns: dsns}, ctx
}

// queryer is a shard, a transaction in one, or a plain pool.
type queryer interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}

// shard returns the handle of a shard.
func (b *testBundle) shard(t testing.TB, n int) router.Shard {
	t.Helper()
	s, err := b.ForShard(shards.Number(n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs SQL past the router.
func (b *testBundle) run(ctx context.Context, t testing.TB, sql string) {
	t.Helper()
	if _, err := b.plain.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// apply puts the options into a DSN.
func (o options) apply(t testing.TB, dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("bad DSN")
	}
	if o.address != "" {
		u.Host = o.address
	}
	q := u.Query()
	for name, value := range o.dsn {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	if o.as != nil {
		return o.as(u.String())
	}
	return u.String()
}

func openPlain(ctx context.Context, t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal("bad DSN")
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = "" // unqualified names fail
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func admin(ctx context.Context, t testing.TB, sql string) {
	t.Helper()
	if err := routertest.Admin(ctx, sql); err != nil {
		t.Error(err)
	}
}

// plainIn opens a pool whose sessions have the search_path that the router would set.
func plainIn(ctx context.Context, t testing.TB, dsn, mode, schema string) *pgxpool.Pool {
	t.Helper()
	opts := options{dsn: execMode(mode)}
	opts.dsn["search_path"] = schema + ", pg_temp"
	pool, err := pgxpool.New(ctx, opts.apply(t, dsn))
	if err != nil {
		t.Fatal("bad DSN")
	}
	t.Cleanup(pool.Close)
	return pool
}

func exampleRouter(ctx context.Context) *router.Router {
	config := shards.Config{
		Cluster: "test", Shards: shardCount, Epoch: epoch,
		Hosts:     []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: shardCount - 1}), Host: "pg-a"}},
	}
	m, err := config.Map()
	if err != nil {
		panic(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: patient})
	if err != nil {
		panic(err)
	}
	return r
}

// same tells whether an error comes as it is: callers compare the sentinels of pgx.
func same(err, want error) bool { return err == want } //nolint:errorlint // see above
