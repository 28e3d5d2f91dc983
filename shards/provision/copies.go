package provision

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// Copy is a shard's schema on a host that is not its home, while it is at home as well.
type Copy struct {
	Shard  shards.Number
	Schema string
	Host   string // where the copy is
	Home   string
}

// String says what to do about it.
func (c Copy) String() string {
	return fmt.Sprintf("%s on %s is a copy of shard %d, whose home is %s: %s", c.Schema, c.Host, c.Shard, c.Home, c.advice())
}

func (c Copy) advice() string {
	return fmt.Sprintf("nobody reads it there; drop or rename it on %s once no row is only in it", c.Host)
}

// copies returns the schemas of shards that are at home and on another host as well.
func copies(m *shards.Map, inventories []*inventory) []Copy {
	var all []Copy
	for n := range m.All().All() {
		schema, home := m.Schema(n), inventories[m.HostIndex(n)]
		if _, ok := home.found[schema]; !ok {
			continue
		}
		for _, inv := range inventories {
			if _, ok := inv.found[schema]; ok && inv != home {
				all = append(all, Copy{Shard: n, Schema: schema, Host: inv.host.Name, Home: home.host.Name})
			}
		}
	}
	return all
}
