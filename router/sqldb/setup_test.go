package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/sqldb"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

const (
	shardCount = 32              // on two hosts
	testLimit  = 5 * time.Minute // for one test
)

// modes are the values of default_query_exec_mode that a router takes.
var modes = []string{"cache_statement", "exec"}

// server has the one cluster on which all tests run, each in shards of its own.
var server *localpg.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	localpg.IgnoreEnvironment()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	server, err = localpg.Start(ctx, shardtest.ServerConfig())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := server.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// gorm never ends what watches over the statements that it has prepared.
	return leak.Check(code, goleak.IgnoreTopFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

// cluster makes the shards, each with its own row 1 in the table photos.
var cluster = sync.OnceValues(func() (hosts []shards.Host, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	for i := range 2 {
		dsn, err := server.CreateDatabase(ctx, fmt.Sprintf("sqldb_%d_%d", os.Getpid(), i))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: dsn})
	}
	m, err := shardtest.MapConfig(shardCount, hosts).Map()
	if err != nil {
		return nil, err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return nil, err
	}
	for i, host := range hosts {
		var sql strings.Builder
		for n := shardCount / 2 * i; n < shardCount/2*(i+1); n++ {
			fmt.Fprintf(&sql, `set search_path = %s;
create type visibility as enum ('private', 'public');
create table photos (id bigint primary key default next_id(), owner bigint not null, title text,
	seen_by visibility not null default 'private', created_at timestamptz not null default now());
insert into photos values (1, %d, 'first');
`, m.Schema(shards.Number(n)), n)
		}
		conn, err := pgx.Connect(ctx, host.ConnString())
		if err != nil {
			return nil, err
		}
		_, err = conn.Exec(ctx, sql.String())
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return nil, err
		}
	}
	return hosts, nil
})

// newRouter returns a router over the cluster with some connections to each host.
func newRouter(ctx context.Context, mode string, conns int32) (*router.Router, error) {
	hosts, err := cluster()
	if err != nil {
		return nil, err
	}
	config := shardtest.MapConfig(shardCount, nil)
	for _, host := range hosts {
		u, err := url.Parse(host.DSN)
		if err != nil {
			return nil, errors.New("bad DSN")
		}
		q := u.Query()
		q.Set("default_query_exec_mode", mode)
		u.RawQuery = q.Encode()
		config.Hosts = append(config.Hosts, shards.Host{Name: host.Name, DSN: u.String()})
	}
	config.Placement = shards.Evenly(shardCount, config.Hosts)
	m, err := config.Map()
	if err != nil {
		return nil, err
	}
	return router.New(ctx, router.Config{Map: m, Failover: router.Failover{FailAfter: testLimit}, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = conns
		return nil
	}})
}

type testBundle struct{ *router.Router }

func setup(t *testing.T, mode string, conns int32) (*testBundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	r, err := newRouter(ctx, mode, conns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &testBundle{r}, ctx
}

func (b *testBundle) shard(t *testing.T, n int) router.Shard {
	t.Helper()
	s, err := b.ForShard(shards.Number(n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open returns a handle that is closed when the test ends.
func (b *testBundle) open(t *testing.T, n int) *sql.DB {
	t.Helper()
	db := sqldb.Open(b.shard(t, n))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// isFree fails the test unless each host has a connection to spare.
func (b *testBundle) isFree(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // pgx takes up to 15 s to see off a cancelled statement
	defer cancel()
	if err := b.Ping(ctx); err != nil {
		t.Errorf("a connection was not given back: %v", err)
	}
}
