package many_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const (
	shardCount = routertest.Shards
	testLimit  = routertest.Limit // time limit of one test
)

// patient keeps a host up while a busy machine makes its server silent for a while. A host that refuses connections
// still counts as down at once.
var patient = router.Failover{FailAfter: testLimit}

// modes are the values of default_query_exec_mode that a router accepts.
var modes = []string{"cache_statement", "exec"}

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil { // each makes many calls; go test's -rapid.checks says another number
		panic(err)
	}
	os.Exit(routertest.Main(m, nil, nil))
}

// options describe a test's cluster. The zero value is one host with four connections.
type options struct {
	hosts int
	conns int32
	mode  string // default_query_exec_mode
	pool  func(cfg *pgxpool.Config)
	by    *shards.Strategy
	on    *testBundle // whose databases to use; if nil, the test creates its own
}

// testBundle is a cluster of 64 shards, each with its own row 1 in the table photos, and a router over it.
type testBundle struct {
	*router.Router
	plain *pgxpool.Pool // on the first host
	dsns  []string      // of the hosts
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
	config := shards.Config{Cluster: "test", Shards: shardCount, Epoch: shardtest.Epoch}
	if opts.by != nil {
		config.Strategy = *opts.by
	}
	for i, dsn := range dsns {
		config.Hosts = append(config.Hosts, shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: withMode(t, dsn, opts.mode)})
	}
	config.Placement = shards.Evenly(shardCount, config.Hosts)
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: patient, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		if cfg.MaxConns = opts.conns; opts.conns == 0 {
			cfg.MaxConns = 4
		}
		if opts.pool != nil {
			opts.pool(cfg)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &testBundle{Router: r, plain: openPool(ctx, t, dsns[0]), dsns: dsns}, ctx
}

func openPool(ctx context.Context, t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// withMode adds a default_query_exec_mode to a DSN.
func withMode(t testing.TB, dsn, mode string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("bad DSN")
	}
	if q := u.Query(); mode != "" {
		q.Set("default_query_exec_mode", mode)
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// exampleRouter returns a router on a new database, which ends with its server.
func exampleRouter(ctx context.Context) *router.Router {
	m, err := shardtest.MapConfig(shardCount, []shards.Host{{Name: "pg-a", DSN: routertest.ExampleDatabase(ctx)}}).Map()
	if err != nil {
		panic(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, Failover: patient})
	if err != nil {
		panic(err)
	}
	return r
}

// onHost runs SQL on a host without the router.
func onHost(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return errors.New("connect to a host")
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// run runs SQL on the first host without the router.
func (b *testBundle) run(ctx context.Context, t testing.TB, sql string) {
	t.Helper()
	if _, err := b.plain.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
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
