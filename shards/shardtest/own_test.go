package shardtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A test's own server can be killed, and its standby promoted; both are stopped when the test ends.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	var primary, standby *localpg.Server
	t.Run("kill and promote", func(t *testing.T) {
		primary = shardtest.OwnServer(t)
		standby = shardtest.Standby(t, primary, "standby")
		if err := primary.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), standby.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "select pg_promote()"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "create table photos (id bigint)"); err != nil {
			t.Errorf("the promoted standby: %v", err)
		}
	})
	if standby == nil {
		t.Skip("no standby was started: the part before says why")
	}
	if conn, err := pgx.Connect(t.Context(), standby.DSN("postgres")); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the standby still answers")
	}
}
