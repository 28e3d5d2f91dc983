package move_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// All shards of a host move to two others at once, half of them to each: 2048 in the full test.
func TestDrainHost(t *testing.T) {
	t.Parallel()
	count := 6
	if pgtest.Full() {
		count = 2048
	}
	config := shardtest.MapConfig(count, shardtest.Hosts(t, 3))
	all := shards.SetOfRanges(shards.Range{Last: shards.Number(count - 1)})
	config.Placement = []shards.Placement{{Host: "pg-a", Shards: all}}
	b := setupOn(t, config)
	b.makeShards()
	b.exec(0, fill)
	var rows strings.Builder
	for n := range all.All() {
		fmt.Fprintf(&rows, "insert into %s.photos (title) select 'drained' from generate_series(1, %d);\n", b.m.Schema(n), n%100+1)
	}
	b.exec(0, rows.String())
	b.cfg.Shards, b.cfg.To, b.cfg.Targets, b.cfg.PerHost = all, "", balance.Drain(b.m, "pg-a", nil, nil), 8
	began := time.Now()
	report, err := move.Run(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d shards drained in %s", count, time.Since(began).Round(time.Second/10))
	b.equal("moved", report.Done.String(), all.String())
	b.load()
	b.equal("on the hosts", fmt.Sprint(len(b.m.NumbersOn("pg-a")), len(b.m.NumbersOn("pg-b")), len(b.m.NumbersOn("pg-c"))), fmt.Sprint(0, count/2, count/2))
	for _, host := range []int{1, 2} {
		var counts, want []string
		for _, n := range b.m.NumbersOn(b.m.Hosts()[host].Name) {
			counts = append(counts, fmt.Sprintf(`select %d as shard, count(*) from %s.photos where title = 'drained'`, n, b.m.Schema(n)))
			want = append(want, fmt.Sprint(n%100+1))
		}
		b.equal("rows of each shard", b.text(host, `select string_agg(count::text, ' ' order by shard) from (`+strings.Join(counts, " union all ")+`) c`), strings.Join(want, " "))
	}
	b.clean()
}
