package moves

import (
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/golden"
	"github.com/kiloshard/kiloshard/shards/move"
)

// TestJSON compares the JSON of a plan with files.
func TestJSON(t *testing.T) {
	t.Parallel()
	planned := []move.Planned{
		{Shard: 1, Source: "pg-a", Target: "pg-b", Bytes: 100, Space: 200},
		{Shard: 2, Source: "pg-a", Target: "pg-b", Notes: []string{"a table without a primary key"}},
	}
	golden.JSON(t, "plan", func(a *cli.App) error { return printPlanned(a, planned) })
	golden.JSON(t, "plan_empty", func(a *cli.App) error { return printPlanned(a, nil) })
}
