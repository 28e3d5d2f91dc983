package balance

import "github.com/kiloshard/kiloshard/shards"

// Load is what a host carries.
type Load struct {
	Host   string
	Weight int
	Shards int
	Bytes  int64
	Writes float64 // rows a second
	Load   float64 // for its weight, as [Rebalance] weighs bytes and writes: 1 if all hosts are even
}

// Loads returns what each host of a map carries once the shards in targets are on their new hosts.
func Loads(m *shards.Map, sizes map[shards.Number]int64, writes map[shards.Number]float64, targets map[shards.Number]string) []Load {
	b := newBalance(m, sizes, writes)
	all := make([]Load, len(m.Hosts()))
	at := map[string]int{}
	weights := 0
	for i, h := range m.Hosts() {
		all[i], at[h.Name] = Load{Host: h.Name, Weight: max(h.Weight, 1)}, i
		weights += all[i].Weight
	}
	for n := range m.All().All() {
		i := m.HostIndex(n)
		if target, moves := targets[n]; moves {
			i = at[target]
		}
		h := &all[i]
		h.Shards, h.Bytes, h.Writes = h.Shards+1, h.Bytes+sizes[n], h.Writes+writes[n]
		h.Load += b.load[n] * float64(weights) / float64(h.Weight)
	}
	return all
}
