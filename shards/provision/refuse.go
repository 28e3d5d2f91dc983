package provision

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// MisplacedError reports shards that are on other hosts than the map says. Creating them where the
// map says would hide their rows.
type MisplacedError struct {
	Map    *shards.Map
	Shards []shards.Number
	Hosts  []string // of each shard
}

// Error names the first shard, its host, and its host in the map.
func (e *MisplacedError) Error() string {
	text := fmt.Sprintf("shard %d (%s) lives on %s, the map puts it on %s", e.Shards[0], e.Map.Schema(e.Shards[0]), e.Hosts[0], e.Map.Host(e.Shards[0]).Name)
	if more := len(e.Shards) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "; expected the map to say where shards are: correct its placement, or move the shards"
}

// misplaced returns a [MisplacedError] if a shard is missing on its host but exists on another.
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

// ForeignError reports schemas that have the names of shards, on the hosts of these shards, but no objects of a shard:
// neither next_id_seq nor one of its functions.
type ForeignError struct {
	Schemas []string
	Hosts   []string // of each schema
	Owners  []string // roles, one for each schema
}

// Error names the first schema, its host and its owner.
func (e *ForeignError) Error() string {
	text := fmt.Sprintf("schema %s on %s was made by somebody else: it belongs to role %s and has nothing of a shard in it", e.Schemas[0], e.Hosts[0], e.Owners[0])
	if more := len(e.Schemas) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "; expected no such schema: rename or drop it, or choose another schema_prefix"
}

// foreign returns a [ForeignError] if a schema has a shard's name on the shard's host but no objects of a shard.
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
