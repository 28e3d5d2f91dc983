package ids

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/golden"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestJSON compares the JSON of id advance with files.
func TestJSON(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(4, []shards.Host{{Name: "pg-a", DSN: "postgres://a/app"}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg := provision.AdvanceConfig{Map: m, Host: "pg-a", Beyond: at}
	moved := []provision.Advanced{{Shard: 1, Schema: "shard_00001", Sequence: "id_seq", Was: at.Add(-time.Hour)}}
	golden.JSON(t, "advance", func(a *cli.App) error { return printAdvanced(a, cfg, moved, nil) })
	golden.JSON(t, "advance_empty", func(a *cli.App) error { return printAdvanced(a, cfg, nil, nil) })
}
