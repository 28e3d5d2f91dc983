package stores_test

import (
	"context"
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/bench/stores"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// A small run reports all figures.
func TestRun(t *testing.T) {
	t.Parallel()
	report, err := stores.Run(t.Context(), stores.Config{
		NewHosts: func(context.Context) ([]shards.Host, error) { return shardtest.Hosts(t, 2), nil },
		Shards:   8, Rounds: 1, Calls: 16, Callers: 2, IDs: 20, Entities: 160,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Points) != 9 || report.Filled == 0 || report.Rate <= 0 {
		t.Errorf("figures are missing: %+v", report)
	}
	for _, f := range report.Points {
		if f.Ours <= 0 || f.ByHand <= 0 || f.Ratio <= 0 || f.OurMessages <= 0 || f.ByHandMessages <= 0 {
			t.Errorf("a figure is missing: %+v", f)
		}
	}
}
