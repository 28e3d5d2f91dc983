package connect_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestSwappedSettings has somebody put a view in the place of kiloshard.settings while a session waits to read that.
func TestSwappedSettings(t *testing.T) {
	t.Parallel()
	sql(t, plain, "create database swapped")
	t.Cleanup(func() { sql(t, plain, "drop database swapped with (force)") })
	dsn := plain.DSN("swapped")
	m, err := shardtest.MapConfig(8, []shards.Host{{Name: "pg-a", DSN: dsn, Weight: 1}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	taken := pgtest.Swap(t, dsn, "kiloshard", "settings", "cluster text", "select loot.took()::text as cluster", func() {
		conn, err := connect.OpenPlain(t.Context(), m.Hosts()[0], nil)
		if err != nil {
			t.Error(err)
			return
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if taken != "" {
		t.Errorf("code of somebody else ran with the rights of %s", taken)
	}
}
