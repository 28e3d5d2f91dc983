package verify

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/extensions"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/leads"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Input is the material of a comparison.
type Input struct {
	Wanted    *inventory.Wanted
	Hosts     []*inventory.Host // with details
	Unreached []error           // by host; nil for a host that answers
	Lost      shards.Set        // shards that are on no host, but in a ledger
}

// Compare returns the differences of each host that answers, and of its shards.
func Compare(in Input) []difference.List {
	c := &comparison{Input: in, grants: in.Wanted.Grants(in.Hosts), lists: make([]difference.List, len(in.Hosts))}
	for _, h := range in.Hosts {
		c.extensions = append(c.extensions, h.Extensions)
	}
	for i, h := range in.Hosts {
		if in.Unreached[i] == nil {
			c.compareHost(&c.lists[i], h)
		}
	}
	for n := range in.Wanted.Map.All().All() {
		if in.Unreached[in.Wanted.Map.HostIndex(n)] == nil {
			c.compareShard(n)
		}
	}
	return c.lists
}

type comparison struct {
	Input
	grants     []sql.Grant            // those of most shards
	extensions []extensions.Installed // by host
	lists      []difference.List      // by host
}

// compareHost compares the objects of a host that are not parts of one shard.
func (c *comparison) compareHost(l *difference.List, h *inventory.Host) {
	w, m := c.Wanted, c.Wanted.Map
	h.Foreign.Compare(l)
	if h.Foreign.HelperUsable() && w.Helper.CompareSettings(l, h.Helper) {
		w.Helper.Compare(l, h.Helper, h.Versions, h.Details.Functions[mapsql.Helper])
		h.Rights.Compare(l, c.grants, mapsql.Helper)
		h.Rights.CompareOwners(l)
	}
	h.Extensions.Compare(l, m, c.extensions)
	w.Generators.CompareHost(l, h.Generators, h.Versions, h.Name)
	for schema := range h.Shards {
		if !isShard(m, schema) {
			l.Add(difference.Stray, schema, "a schema named like a shard", fmt.Sprintf("shards 0 to %d of five digits", m.Len()-1))
		}
	}
	for _, d := range h.Details.Defaults {
		if isShard(m, d.Schema) {
			d.Compare(l, catalog.IDSequence(m))
		}
	}
	for _, n := range h.Details.Narrow {
		if isShard(m, n.Schema) {
			n.Compare(l)
		}
	}
	leads.Compare(l, h.Details.Leads)
}

// isShard reports whether a schema has the name of a shard of the map.
func isShard(m *shards.Map, schema string) bool {
	n, ok := m.NumberOf(schema)
	return ok && m.Has(n)
}
