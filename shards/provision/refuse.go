package provision

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// MisplacedError says that shards live on other hosts than the map says. Creating them where the
// map says would hide the rows they have.
type MisplacedError struct {
	Map    *shards.Map
	Shards []shards.Number
	Hosts  []string // where each of them lives
}

// Error names the first of the shards, where it lives and where the map says.
func (e *MisplacedError) Error() string {
	text := fmt.Sprintf("shard %d (%s) lives on %s, the map puts it on %s", e.Shards[0], e.Map.Schema(e.Shards[0]), e.Hosts[0], e.Map.Host(e.Shards[0]).Name)
	if more := len(e.Shards) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "; expected the map to say where shards are: correct its placement, or move the shards"
}

// misplaced returns a [MisplacedError] when a shard is missing at home but lives elsewhere.
func misplaced(m *shards.Map, inventories []*inventory) error {
	wrong := &MisplacedError{Map: m}
	for n := range m.All().All() {
		home := inventories[m.HostIndex(n)]
		if _, ok := home.found[m.Schema(n)]; ok {
			continue
		}
		for _, inv := range inventories {
			if inv.found[m.Schema(n)].ours {
				wrong.Shards = append(wrong.Shards, n)
				wrong.Hosts = append(wrong.Hosts, inv.host.Name)
				break
			}
		}
	}
	if len(wrong.Shards) == 0 {
		return nil
	}
	return wrong
}

// ForeignError says that schemas are named like shards of the map, on the hosts where the map puts these, and have
// nothing of a shard in them: neither next_id_seq nor one of its functions.
type ForeignError struct {
	Schemas []string
	Hosts   []string // where each of them is
	Owners  []string // a role each
}

// Error names the first of the schemas, where it is, and whose.
func (e *ForeignError) Error() string {
	text := fmt.Sprintf("schema %s on %s was made by somebody else: it belongs to role %s and has nothing of a shard in it", e.Schemas[0], e.Hosts[0], e.Owners[0])
	if more := len(e.Schemas) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "; expected no such schema: rename or drop it, or choose another schema_prefix"
}

// foreign returns a [ForeignError] when a shard's schema is at its home, and somebody else made it.
func foreign(m *shards.Map, inventories []*inventory) error {
	e := &ForeignError{}
	for n := range m.All().All() {
		inv := inventories[m.HostIndex(n)]
		if found, ok := inv.found[m.Schema(n)]; ok && !found.ours {
			e.Schemas, e.Hosts, e.Owners = append(e.Schemas, m.Schema(n)), append(e.Hosts, inv.host.Name), append(e.Owners, found.owner)
		}
	}
	if len(e.Schemas) == 0 {
		return nil
	}
	return e
}
