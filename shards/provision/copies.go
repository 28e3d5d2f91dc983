package provision

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// Copies are shards of which a host has schemas although their home, which has them too, is another host.
type Copies struct {
	Host   string // where the copies are
	Home   string
	Shards shards.Set
}

// String says what to do about them.
func (c Copies) String() string {
	return fmt.Sprintf("%s has copies of shards whose home is %s (%s): %s", c.Host, c.Home, c.Shards, copyAdvice(c.Host))
}

func copyAdvice(host string) string {
	return fmt.Sprintf("nobody reads a copy; drop or rename it on %s once no row is only in it", host)
}

// copies returns the copies of shards, sorted by host and home.
func copies(m *shards.Map, inventories []*inventory) []Copies {
	type pair struct{ host, home string }
	numbers := map[pair][]shards.Number{}
	for n := range m.All().All() {
		schema, home := m.Schema(n), inventories[m.HostIndex(n)]
		if _, ok := home.found[schema]; !ok {
			continue
		}
		for _, inv := range inventories {
			if _, ok := inv.found[schema]; ok && inv != home {
				p := pair{inv.host.Name, home.host.Name}
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
