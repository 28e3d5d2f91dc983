package shardtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// startLimit bounds the start of a server, a download included.
const startLimit = 5 * time.Minute

// shared is the server of this test binary.
var shared struct {
	running bool // Run was called

	mu        sync.Mutex // guards what follows
	server    *localpg.Server
	err       error // of starting the server
	kept      bool  // a failed test's databases are kept
	databases int   // number of names given out
	templates map[string]*template
}

// Run runs the tests and then stops the server if a test started it. It returns the code for
// [os.Exit]. Variables such as PGSERVICE, PGOPTIONS and PGTZ, which would have a say in all connections, are not
// in the environment of the tests.
func Run(m *testing.M) int {
	localpg.IgnoreEnvironment()
	shared.running = true
	code := m.Run()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return code
	}
	if keep() {
		fmt.Fprintln(os.Stderr, "shardtest: kept:", shared.server.Describe())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(dropTemplates(ctx), shared.server.Stop(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "shardtest:", err)
		code = max(code, 1)
	}
	return code
}

// dropTemplates drops the templates if the server keeps running after the tests.
func dropTemplates(ctx context.Context) error {
	if shared.server.Source() != localpg.DSN && !shared.kept {
		return nil
	}
	var errs []error
	for _, tmpl := range shared.templates {
		for _, name := range tmpl.names {
			errs = append(errs, dropDatabase(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// server returns the server of this test binary, and starts it on the first call.
func server(t testing.TB) *localpg.Server {
	t.Helper()
	if !shared.running {
		t.Fatal("shardtest: expected func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) } in this package")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		shared.server, shared.err = localpg.Start(ctx, ServerConfig())
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// ServerConfig returns the configuration of this package's server, from the environment. A test that
// needs a server of its own can change a copy of it.
func ServerConfig() localpg.Config {
	return localpg.Config{
		Source: os.Getenv("KILOSHARD_TEST_POSTGRES"),
		DSN:    os.Getenv("KILOSHARD_POSTGRES_DSN"),
		Image:  os.Getenv("KILOSHARD_POSTGRES_IMAGE"),
		Dir:    os.Getenv("KILOSHARD_POSTGRES_DIR"),
		Keep:   keep(),
		Settings: map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB",
			"max_connections": "400",
			// For moves of shards, several at a time.
			"wal_level": "logical", "max_replication_slots": "80", "max_wal_senders": "80",
			"max_logical_replication_workers": "40", "max_worker_processes": "60", "wal_retrieve_retry_interval": "100ms",
		},
	}
}

func keep() bool { return os.Getenv("KILOSHARD_KEEP") == "1" }

// admin is a session on the server, outside any test's database. A new one for each statement would cost as much as the
// statement.
var admin struct {
	mu   sync.Mutex // guards the session
	conn *pgx.Conn
}

// exec runs a statement on the server, outside any test's database.
func exec(ctx context.Context, statement string) error {
	admin.mu.Lock()
	defer admin.mu.Unlock()
	if admin.conn == nil || admin.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, shared.server.DSN("postgres"))
		if err != nil {
			return err
		}
		admin.conn = conn
	}
	if _, err := admin.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
