package prove_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// database is where the shards are, on every server.
const database = "app"

// start starts a server with a database that has the subject's shards.
func start(t *testing.T, s subject, cfg localpg.Config) *localpg.Server {
	t.Helper()
	return startChanged(t, s, cfg, func(script string) string { return script })
}

// startChanged is start with a change of the script that makes the shards.
func startChanged(t *testing.T, s subject, cfg localpg.Config, change func(script string) string) *localpg.Server {
	t.Helper()
	settings := map[string]string{"max_connections": "260", "shared_buffers": "128MB"}
	maps.Copy(settings, cfg.Settings)
	cfg.Source, cfg.Settings = localpg.Local, settings
	server, err := localpg.Start(t.Context(), cfg)
	if errors.Is(err, localpg.ErrUnavailable) {
		missing(t, err.Error()+": install Debian's package postgresql")
	}
	server = stopLater(t, server, err)
	t.Log(server.Describe())
	dsn, err := server.CreateDatabase(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	script := s.database()
	for _, number := range numbers {
		script += s.shard(t, number)
	}
	do(t, dsn, change(script))
	return server
}

// stopLater stops a server at the end of the test.
func stopLater(t *testing.T, server *localpg.Server, err error) *localpg.Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// connect opens a session of the test's own.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// do runs a script in a session of its own.
func do(t *testing.T, dsn, script string) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(t.Context())
	if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// ask returns the only value that a query gives, in a session of its own.
func ask[T any](t *testing.T, dsn, query string, args ...any) T {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(t.Context())
	var value T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(callLimit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

// sharedDir returns an empty directory for this process and the server, whose users may differ.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kiloshard-prove-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// target is the database that has the shards now. It is safe for concurrent use.
type target struct{ at atomic.Pointer[string] }

func targetOn(server *localpg.Server) *target {
	h := new(target)
	h.moveTo(server)
	return h
}

func (h *target) moveTo(server *localpg.Server) {
	dsn := server.DSN(database)
	h.at.Store(&dsn)
}

func (h *target) dsn() string { return *h.at.Load() }
