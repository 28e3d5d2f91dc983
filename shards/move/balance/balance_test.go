package balance_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/balance"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// spread returns a map of hosts with so many shards each, and how many each has after some moves.
func spread(t *testing.T, weights, counts []int) (*shards.Map, func(map[shards.Number]string) []int) {
	t.Helper()
	c := shards.Config{Cluster: "test", Epoch: shardtest.Epoch}
	first := 0
	for i, count := range counts {
		h := shards.Host{Name: string(rune('a' + i)), DSN: "postgres://" + string(rune('a'+i)), Weight: weights[i]}
		c.Hosts = append(c.Hosts, h)
		if count > 0 {
			c.Placement = append(c.Placement, shards.Placement{Host: h.Name, Shards: shards.SetOfRanges(shards.Range{First: shards.Number(first), Last: shards.Number(first + count - 1)})})
		}
		first += count
	}
	c.Shards = first
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m, func(targets map[shards.Number]string) []int {
		after := make([]int, len(counts))
		for n := range m.All().All() {
			host, moved := targets[n]
			if !moved {
				host = m.Host(n).Name
			}
			after[host[0]-'a']++
		}
		return after
	}
}

func TestRebalance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		weights, counts, want []int
		moves                 int
	}{
		"even":          {[]int{1, 1}, []int{8, 8}, []int{8, 8}, 0},
		"odd":           {[]int{1, 1}, []int{9, 8}, []int{9, 8}, 0},
		"a new host":    {[]int{1, 1, 1}, []int{12, 12, 0}, []int{8, 8, 8}, 8},
		"a heavy one":   {[]int{1, 3}, []int{16, 0}, []int{4, 12}, 12},
		"all on one":    {[]int{1, 1, 1, 1}, []int{100, 0, 0, 0}, []int{25, 25, 25, 25}, 75},
		"nothing fits":  {[]int{1, 1}, []int{1, 0}, []int{1, 0}, 0},
		"only one host": {[]int{1}, []int{4}, []int{4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, after := spread(t, tt.weights, tt.counts)
			targets := balance.Rebalance(m, nil, nil)
			got := after(targets)
			for i := range got {
				if got[i] != tt.want[i] || len(targets) != tt.moves {
					t.Fatalf("%v by %d moves, want %v by %d", got, len(targets), tt.want, tt.moves)
				}
			}
		})
	}
}

// By size a single large shard goes rather than many small ones, where that is what evens out.
func TestRebalanceBySize(t *testing.T) {
	t.Parallel()
	m, _ := spread(t, []int{1, 1}, []int{10, 0})
	sizes := map[shards.Number]int64{3: 1 << 30, 4: 1 << 30}
	targets := balance.Rebalance(m, sizes, nil)
	large := 0
	for n := range targets {
		if sizes[n] > 0 {
			large++
		}
	}
	if large != 1 || len(targets) != 5 {
		t.Errorf("%v: expected one of the large shards and four others", targets)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	m, after := spread(t, []int{1, 1, 2}, []int{100, 10, 30})
	got := after(balance.Drain(m, "a", nil, nil))
	if got[0] != 0 || got[1] != 47 && got[1] != 46 || got[1]+got[2] != 140 {
		t.Errorf("got %v", got)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	m, after := spread(t, []int{1, 1}, []int{10, 3})
	if got := after(balance.Split(m, "a", "b", nil, nil)); got[0] != 5 || got[1] != 8 {
		t.Errorf("got %v", got)
	}
	// A shard that is half of all stays, and the others leave.
	sizes := map[shards.Number]int64{3: 1 << 30}
	targets := balance.Split(m, "a", "b", sizes, nil)
	if _, leaves := targets[3]; leaves || len(targets) != 9 {
		t.Errorf("got %v", targets)
	}
	// The one that takes all writes leaves, since it is as much of the load as all bytes beside it, and takes fewer.
	if targets := balance.Split(m, "a", "b", sizes, map[shards.Number]float64{4: 10}); len(targets) != 1 || targets[4] != "b" {
		t.Errorf("got %v", targets)
	}
}

// Shards that are written to are spread as well as large ones.
func TestDrainByWrites(t *testing.T) {
	t.Parallel()
	m, after := spread(t, []int{1, 1, 1}, []int{10, 0, 0})
	writes := map[shards.Number]float64{0: 100, 2: 100, 4: 100, 6: 100}
	targets := balance.Drain(m, "a", nil, writes)
	hot := 0
	for n := range writes {
		if targets[n] == "b" {
			hot++
		}
	}
	if got := after(targets); hot != 2 || got[1] != 5 {
		t.Errorf("%v: expected half of the shards on each host, and half of the writes", targets)
	}
}

// Writes count as much as bytes, and few bytes are moved for them.
func TestRebalanceByWrites(t *testing.T) {
	t.Parallel()
	type shard struct{ gb, writes float64 }
	some := func(n int, s shard) []shard { return slices.Repeat([]shard{s}, n) }
	for name, tt := range map[string]struct {
		a, b  []shard
		moved string
	}{
		"a hot small shard leaves, and not a hot large one": {
			append(some(6, shard{1, 10}), shard{0.001, 100}, shard{1.999, 100}), some(8, shard{1, 10}), "6",
		},
		"nothing is written":     {some(4, shard{1, 0}), some(2, shard{1, 0}), "0"},
		"bytes against writes":   {some(4, shard{1, 0}), some(4, shard{0, 10}), ""},
		"several small hot ones": {append(some(10, shard{2, 120}), shard{30, 800}), some(1, shard{50, 0}), "0-5"},
		"too little for so much": {some(2, shard{100, 0}), some(1, shard{95, 0}), ""},
		"as even as rates tell":  {append(some(8, shard{1, 1000}), some(2, shard{0, 30})...), append(some(8, shard{1, 1000}), some(2, shard{0, 0})...), ""},
		"sizes are exact":        {append(some(8, shard{1, 0}), some(2, shard{0.03, 0})...), append(some(8, shard{1, 0}), some(2, shard{0, 0})...), "8,18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := spread(t, []int{1, 1}, []int{len(tt.a), len(tt.b)})
			sizes, writes := map[shards.Number]int64{}, map[shards.Number]float64{}
			for i, s := range slices.Concat(tt.a, tt.b) {
				sizes[shards.Number(i)], writes[shards.Number(i)] = int64(s.gb*1e9), s.writes
			}
			targets := balance.Rebalance(m, sizes, writes)
			if got := shards.SetOf(slices.Collect(maps.Keys(targets))...).String(); got != tt.moved {
				t.Errorf("%v: expected %q", targets, tt.moved)
			}
		})
	}
}

// apart returns how far apart hosts are, in parts of what each carries when they are even.
func apart(all []balance.Load) float64 {
	share := func(x, y balance.Load) int { return cmp.Compare(x.Load, y.Load) }
	return slices.MaxFunc(all, share).Load - slices.MinFunc(all, share).Load
}

// A plan does not set hosts further apart, whatever they carry, and what it moves makes them more alike.
func TestRebalanceNeverWorse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hosts := rapid.IntRange(1, 5).Draw(rt, "hosts")
		weights := rapid.SliceOfN(rapid.IntRange(1, 8), hosts, hosts).Draw(rt, "weights")
		counts := rapid.SliceOfN(rapid.IntRange(0, 30), hosts, hosts).Draw(rt, "counts")
		counts[0]++ // a map has a shard
		m, _ := spread(t, weights, counts)
		sizes, writes := map[shards.Number]int64{}, map[shards.Number]float64{}
		measured := rapid.Bool().Draw(rt, "measured")
		for n := range m.All().All() {
			sizes[n] = rapid.Int64Range(0, 1<<40).Draw(rt, "size") >> rapid.IntRange(0, 40).Draw(rt, "smaller")
			if measured {
				writes[n] = rapid.Float64Range(0, 1e5).Draw(rt, "writes")
			}
		}
		targets := balance.Rebalance(m, sizes, writes)
		before, after := balance.Loads(m, sizes, writes, nil), balance.Loads(m, sizes, writes, targets)
		if apart(after) > apart(before)+1e-6 {
			rt.Fatalf("%v sets the hosts %g apart, which were %g apart", targets, apart(after), apart(before))
		}
		if hosts == 2 && len(targets) > 0 && apart(after) >= apart(before) {
			rt.Fatalf("%v brings nothing: the hosts are %g apart", targets, apart(after))
		}
		load, all := 0.0, 0
		for i, h := range after {
			load, all = load+h.Load*float64(h.Weight), all+h.Weight
			if before[i].Shards != counts[i] || h.Host != before[i].Host {
				rt.Fatalf("%v, then %v: expected %d shards at first", before[i], h, counts[i])
			}
		}
		if math.Abs(load/float64(all)-1) > 1e-6 {
			rt.Fatalf("the hosts carry %g of all, expected 1", load/float64(all))
		}
	})
}

// Hosts that are even are left alone, whatever they carry.
func TestRebalanceOfEvenHosts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hosts := rapid.IntRange(1, 5).Draw(rt, "hosts")
		weights := rapid.SliceOfN(rapid.IntRange(1, 5), hosts, hosts).Draw(rt, "weights")
		kinds := rapid.IntRange(1, 5).Draw(rt, "kinds") // of shards, of each of which a host has as many as its weight
		counts := make([]int, hosts)
		for i, w := range weights {
			counts[i] = kinds * w
		}
		m, _ := spread(t, weights, counts)
		sizes, writes := map[shards.Number]int64{}, map[shards.Number]float64{}
		for kind := range kinds {
			size, rate := rapid.Int64Range(0, 1<<40).Draw(rt, "size"), rapid.Float64Range(0, 1e5).Draw(rt, "writes")
			for _, h := range m.Hosts() {
				for i, n := range m.NumbersOn(h.Name) {
					if i%kinds == kind {
						sizes[n], writes[n] = size, rate
					}
				}
			}
		}
		for _, w := range []map[shards.Number]float64{nil, writes} {
			if targets := balance.Rebalance(m, sizes, w); len(targets) > 0 {
				rt.Fatalf("%v", targets)
			}
		}
	})
}
