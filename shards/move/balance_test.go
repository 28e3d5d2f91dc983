package move_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
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
			targets := move.Rebalance(m, nil)
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
	targets := move.Rebalance(m, sizes)
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
	got := after(move.Drain(m, "a", nil))
	if got[0] != 0 || got[1] != 47 && got[1] != 46 || got[1]+got[2] != 140 {
		t.Errorf("got %v", got)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	m, after := spread(t, []int{1, 1}, []int{10, 3})
	if got := after(move.Split(m, "a", "b", nil)); got[0] != 5 || got[1] != 8 {
		t.Errorf("got %v", got)
	}
	// A shard that is half of all stays, and the others leave.
	targets := move.Split(m, "a", "b", map[shards.Number]int64{3: 1 << 30})
	if _, leaves := targets[3]; leaves || len(targets) != 9 {
		t.Errorf("got %v", targets)
	}
}
