// Package routertest is what the tests of router and of the packages on it share: a server, and databases that hold 64
// shards.
package routertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

const (
	// Shards is how many shards a database has.
	Shards = 64
	// Limit is how long one test may take.
	Limit = 5 * time.Minute
)

// Server is where all tests of a package have their databases, while Main runs them.
var Server *localpg.Server

// Main starts the server, runs the tests of a package, calls stop, stops the server and checks that no goroutine is left. It
// returns the exit code. Settings are added to those of the server.
func Main(m *testing.M, settings map[string]string, stop func(context.Context) error) int {
	localpg.IgnoreEnvironment()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	config := shardtest.ServerConfig()
	all := maps.Clone(config.Settings)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, settings)
	config.Settings = all
	var err error
	if Server, err = localpg.Start(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if stop != nil {
		err = stop(ctx)
	}
	if err := errors.Join(err, Server.Stop(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return leak.Check(code)
}

// CreateDatabase creates a database for one test: 64 shards, each with its own row 1 in the table photos. It is dropped at
// the end of the test.
func CreateDatabase(ctx context.Context, t testing.TB) (dsn string) {
	t.Helper()
	name, err := copyTemplate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Limit)
		defer cancel()
		if err := Admin(ctx, "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	return Server.DSN(name)
}

// ExampleDatabase creates such a database for an example. It stays until the server stops.
func ExampleDatabase(ctx context.Context) (dsn string) {
	name, err := copyTemplate(ctx)
	if err != nil {
		panic(err)
	}
	return Server.DSN(name)
}

// Unique returns a number for the names of what a server has once, such as roles.
func Unique() int64 { return databases.Add(1) }

// Admin runs SQL in the database postgres, one caller at a time: a template can be copied by one session only.
func Admin(ctx context.Context, query string) error {
	adminLock.Lock()
	defer adminLock.Unlock()
	return run(ctx, Server.DSN("postgres"), query)
}

var (
	adminLock    sync.Mutex
	template     = fmt.Sprintf("router_template_%d", os.Getpid())
	databases    atomic.Int64
	makeTemplate = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), Limit)
		defer cancel()
		dsn, err := Server.CreateDatabase(ctx, template)
		if err != nil {
			return err
		}
		m, err := shardtest.MapConfig(Shards, []shards.Host{{Name: "pg-a", DSN: dsn}}).Map()
		if err != nil {
			return err
		}
		if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
			return err
		}
		var query strings.Builder
		for n := range Shards {
			fmt.Fprintf(&query, `create table %[1]s.photos (id bigint primary key, owner bigint, title text);
insert into %[1]s.photos values (1, %[2]d, 'of shard %[2]d');
`, m.Schema(shards.Number(n)), n)
		}
		query.WriteString("update kiloshard.settings set keys = null;") // each test has a strategy of its own
		return run(ctx, dsn, query.String())
	})
)

func copyTemplate(ctx context.Context) (name string, err error) {
	if err := makeTemplate(); err != nil {
		return "", err
	}
	name = fmt.Sprintf("router_%d_%d", os.Getpid(), databases.Add(1))
	return name, Admin(ctx, "create database "+name+" template "+template+" strategy file_copy") // half as long as the default wal_log
}

func run(ctx context.Context, dsn, query string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, query)
	return err
}
