package move_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// All shards of a host move to two others at once, half of them to each: 100 in the full test.
func TestDrainHost(t *testing.T) {
	t.Parallel()
	count := 6
	if pgtest.Full() {
		count = 100
	}
	config := shardtest.MapConfig(count, shardtest.Hosts(t, 3))
	all := shards.SetOfRanges(shards.Range{Last: shards.Number(count - 1)})
	config.Placement = []shards.Placement{{Host: "pg-a", Shards: all}}
	b := setupOn(t, config)
	b.makeShards()
	b.exec(0, fill)
	for n := range all.All() {
		b.exec(0, fmt.Sprintf(`insert into %s.photos (title) select 'drained' from generate_series(1, %d)`, b.m.Schema(n), n+1))
	}
	b.cfg.Shards, b.cfg.To, b.cfg.Targets, b.cfg.PerHost = all, "", balance.Drain(b.m, "pg-a", nil, nil), 4
	began := time.Now()
	report, err := move.Run(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d shards drained in %s", count, time.Since(began).Round(time.Second/10))
	b.equal("moved", report.Done.String(), all.String())
	b.load()
	b.equal("on the hosts", fmt.Sprint(len(b.m.NumbersOn("pg-a")), len(b.m.NumbersOn("pg-b")), len(b.m.NumbersOn("pg-c"))), fmt.Sprint(0, count/2, count/2))
	for n := range all.All() {
		b.equal("rows of "+b.m.Schema(n), b.text(b.m.HostIndex(n), fmt.Sprintf(`select count(*) from %s.photos where title = 'drained'`, b.m.Schema(n))), fmt.Sprint(n+1))
	}
	b.clean()
}
