package localpg_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/localpg"
)

// TestServer is the life of a server as a service's test has it.
func TestServer(t *testing.T) {
	t.Parallel()
	server, err := localpg.Start(t.Context(), localpg.Config{
		Source: os.Getenv("KILOSHARD_TEST_POSTGRES"), DSN: os.Getenv("KILOSHARD_POSTGRES_DSN"), Image: os.Getenv("KILOSHARD_POSTGRES_IMAGE"),
	})
	if errors.Is(err, localpg.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = server.Stop(context.Background())
		}
	}()
	dsn, err := server.CreateDatabase(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if dsn != server.DSN("app") || server.Describe() == "" {
		t.Errorf("database %q, server %s", dsn, server.Describe())
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := conn.QueryRow(t.Context(), "select current_database()").Scan(&name); err != nil || name != "app" {
		t.Errorf("in database %q, %v", name, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	stopped = true
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.CreateDatabase(t.Context(), "late"); !errors.Is(err, localpg.ErrStopped) {
		t.Errorf("after Stop: got %v, expected ErrStopped", err)
	}
}
