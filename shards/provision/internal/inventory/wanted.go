package inventory

import (
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/generators"
	"github.com/kiloshard/kiloshard/shards/provision/internal/helperschema"
	"github.com/kiloshard/kiloshard/shards/provision/internal/keytables"
	"github.com/kiloshard/kiloshard/shards/provision/internal/rights"
	"github.com/kiloshard/kiloshard/shards/provision/internal/shardschema"
	"github.com/kiloshard/kiloshard/sql"
)

// Wanted are the objects that a map wants on its hosts.
type Wanted struct {
	Map        *shards.Map
	Helper     *helperschema.Wanted
	Shard      *shardschema.Wanted
	KeyTables  keytables.Wanted
	Generators *generators.Wanted
}

// For returns the objects that a map wants.
func For(m *shards.Map) *Wanted {
	return &Wanted{m, helperschema.For(m), shardschema.For(m), keytables.For(m), generators.For(m)}
}

// ours returns the names of the objects that Kiloshard has in schemas whose names match a pattern.
func (w *Wanted) ours(pattern string) sql.Ours {
	relations, functions := generators.Objects(w.Map)
	return sql.Ours{
		Pattern:   pattern,
		Relations: slices.Concat([]string{catalog.IDSequenceName, "schema_version"}, w.KeyTables.Names(), relations),
		Functions: slices.Concat([]string{"next_id", "next_ids"}, functions),
	}
}

// Grants returns the rights that roles have on more than half of the map's existing shards. New shards get these
// rights, and the other shards should have them.
func (w *Wanted) Grants(hosts []*Host) []sql.Grant {
	existing := 0
	var all rights.Rights
	for i, h := range hosts {
		placed := func(schema string) bool {
			n, ok := w.Map.NumberOf(schema)
			return ok && w.Map.Has(n) && w.Map.HostIndex(n) == i
		}
		for schema := range h.Shards {
			if placed(schema) {
				existing++
			}
		}
		for _, r := range h.Rights {
			if placed(r.Schema) {
				all = append(all, r)
			}
		}
	}
	return all.OfMost(existing)
}

// ShardState compares all objects of a shard. With repair, functions that were changed make it old. A shard whose move
// has stopped at the fence is current: only its mover may change it.
func (w *Wanted) ShardState(h *Host, n shards.Number, repair bool) catalog.State {
	schema := w.Map.Schema(n)
	if _, stopped := h.Stopped[schema]; stopped {
		return catalog.Current
	}
	state := w.Shard.State(h.Shards[schema], h.Versions, h.Details.Functions[schema], n, repair)
	state = max(state, w.KeyTables.State(h.KeyTables, h.Versions, schema))
	for _, g := range w.Generators.InShard(n) {
		state = max(state, w.Generators.State(h.Generators, h.Versions, g, repair))
	}
	return state
}
