package localpg_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// publicDir returns an empty directory that every user can enter, unlike t.TempDir of a test that runs as root. It must be
// empty again at the end of the test.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg-test-")
	noError(t, err)
	noError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		noError(t, err)
		noError(t, os.RemoveAll(dir))
		if len(left) > 0 {
			t.Errorf("files left behind: %v", left)
		}
	})
	return dir
}

// start starts a server and stops it at the end of the test.
func start(t *testing.T, cfg localpg.Config) *localpg.Server {
	t.Helper()
	if cfg.Dir == "" && (cfg.Source == localpg.Local || cfg.Source == localpg.Download) {
		cfg.Dir = publicDir(t)
	}
	server, err := localpg.Start(t.Context(), cfg)
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	return server
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // some tests kill the server
	return conn
}

func exec(t *testing.T, dsn, query string) {
	t.Helper()
	_, err := connect(t, dsn).Exec(t.Context(), query)
	noError(t, err)
}

// ask returns the only value of a query.
func ask[T any](t *testing.T, dsn, query string) T {
	t.Helper()
	var value T
	noError(t, connect(t, dsn).QueryRow(t.Context(), query).Scan(&value))
	return value
}

// testLimit limits every wait in a test.
const testLimit = 5 * time.Minute

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testLimit)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// addressOf returns the host and the port that a DSN names.
func addressOf(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	noError(t, err)
	return net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
}

func listening(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// missing skips a test because something is missing, or fails it in CI.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}
