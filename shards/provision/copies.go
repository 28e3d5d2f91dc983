package provision

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
)

// Copies are shards that a host has, although the map places them on another host, which has them too.
type Copies struct {
	Host   string // has the copies
	Home   string // the host in the map
	Shards shards.Set
}

// String describes the copies and how to remove them.
func (c Copies) String() string {
	return fmt.Sprintf("%s has copies of shards whose home is %s (%s): %s", c.Host, c.Home, c.Shards, difference.CopyAdvice(c.Host))
}

// copies returns the copies of shards, sorted by host and home.
func copies(m *shards.Map, hosts []*inventory.Host) []Copies {
	type pair struct{ host, home string }
	numbers := map[pair][]shards.Number{}
	for n := range m.All().All() {
		schema, home := m.Schema(n), hosts[m.HostIndex(n)]
		if _, ok := home.Shards[schema]; !ok {
			continue
		}
		for _, h := range hosts {
			if _, ok := h.Shards[schema]; ok && h != home {
				p := pair{h.Name, home.Name}
				numbers[p] = append(numbers[p], n)
			}
		}
	}
	var all []Copies
	for p, of := range numbers {
		all = append(all, Copies{Host: p.host, Home: p.home, Shards: shards.SetOf(of...)})
	}
	slices.SortFunc(all, func(a, b Copies) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Home, b.Home))
	})
	return all
}
