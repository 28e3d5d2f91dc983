package router_test

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

func BenchmarkForKey(b *testing.B) {
	c, ctx := setup(b, options{})
	sum := shards.Number(0)
	b.ReportAllocs()
	for key := int64(0); b.Loop(); key++ {
		s, _ := c.ForKey(ctx, shards.NumberKey(key))
		sum += s.Number()
	}
	_ = sum
}

func BenchmarkForID(b *testing.B) {
	c, _ := setup(b, options{})
	sum := shards.Number(0)
	for id := shards.ID(0); b.Loop(); id += 1 << 10 {
		s, _ := c.ForID(id & (1<<16 - 1))
		sum += s.Number()
	}
	_ = sum
}

// BenchmarkSelect selects by primary key, in one shard, on one connection, in turns with a plain pool whose sessions
// have the shard's search_path. The metric of interest is the ratio of the medians: 1 if the router cost nothing.
func BenchmarkSelect(b *testing.B) {
	for _, mode := range modes {
		b.Run(mode, func(b *testing.B) {
			c, ctx := setup(b, options{conns: 1, dsn: execMode(mode)})
			plain, shard := plainIn(ctx, b, c.dsns[0], mode, "shard_00009"), c.shard(b, 9)
			var times [2][]float64 // in nanoseconds
			for b.Loop() {
				for i, on := range []queryer{plain, shard} {
					var owner int64
					var title string
					start := time.Now()
					err := on.QueryRow(ctx, `select owner, title from photos where id = $1`, 1).Scan(&owner, &title)
					times[i] = append(times[i], float64(time.Since(start).Nanoseconds()))
					if err != nil || owner != 9 {
						b.Fatal(owner, err)
					}
				}
			}
			plainMedian, shardMedian := stats.Median(times[0]), stats.Median(times[1])
			b.ReportMetric(plainMedian, "pgxpool-ns")
			b.ReportMetric(shardMedian, "router-ns")
			b.ReportMetric(plainMedian/shardMedian, "ratio")
		})
	}
}

// BenchmarkAllocations is what the router alone allocates for a select, beside pgx's 11.
func BenchmarkAllocations(b *testing.B) {
	c, ctx := setup(b, options{conns: 1})
	s := c.shard(b, 9)
	b.ReportAllocs()
	var owner int64
	var title string
	for b.Loop() {
		if err := s.QueryRow(ctx, `select owner, title from photos where id = $1`, 1).Scan(&owner, &title); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManyShards spreads the same select over all shards on one connection.
func BenchmarkManyShards(b *testing.B) {
	c, ctx := setup(b, options{conns: 1})
	var owner int64
	for key := int64(0); b.Loop(); key++ {
		s, _ := c.ForKey(ctx, shards.NumberKey(key))
		err := s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		if err != nil || owner != int64(s.Number()) {
			b.Fatal(owner, err)
		}
	}
}
