package inventory

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/columns"
	"github.com/kiloshard/kiloshard/shards/provision/internal/extensions"
	"github.com/kiloshard/kiloshard/shards/provision/internal/fences"
	"github.com/kiloshard/kiloshard/shards/provision/internal/generators"
	"github.com/kiloshard/kiloshard/shards/provision/internal/helperschema"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/keytables"
	"github.com/kiloshard/kiloshard/shards/provision/internal/leads"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/shards/provision/internal/rights"
	"github.com/kiloshard/kiloshard/shards/provision/internal/shardschema"
	"github.com/kiloshard/kiloshard/shards/provision/internal/trust"
)

// Host is the content of one host.
type Host struct {
	Name       string
	Foreign    trust.Findings
	Helper     helperschema.Found
	Shards     map[string]shardschema.Found // schemas with the names of shards, by name, without those that are fences
	Stopped    map[string]string            // shards whose move has stopped at the fence; see [fences.Found]
	Versions   catalog.Versions
	Rights     rights.Rights
	KeyTables  keytables.Found
	Generators generators.Found
	Extensions extensions.Installed
	Details    Details // empty unless they were asked for
}

// Details are the parts of objects, for comparing them one by one.
type Details struct {
	Functions map[string]catalog.Functions    // of shards and of the helper schema, by schema
	Sequences map[string]shardschema.Sequence // of shards, by schema
	Defaults  []columns.Default
	Narrow    []columns.Narrow
	Leads     []leads.Lead
}

// HasShards reports whether a host has any shard.
func (h *Host) HasShards() bool {
	for _, found := range h.Shards {
		if found.Ours {
			return true
		}
	}
	return false
}

// ReadAll reads every host of the map. A host that does not answer is empty except for its name.
func (w *Wanted) ReadAll(ctx context.Context, s *hosts.Sessions, details bool) ([]*Host, error) {
	all := make([]*Host, len(s.Hosts()))
	for i, host := range s.Hosts() {
		all[i] = &Host{Name: host.Name}
	}
	err := s.Each(func(i int, conn *pgx.Conn) error {
		h, err := w.Read(ctx, conn, s.Hosts()[i], mapsql.Pattern(w.Map), details)
		if err == nil {
			all[i] = h
		}
		return err
	})
	return all, err
}

// Read reads the content of a host, of shards whose schemas' names match a pattern: [mapsql.Pattern] for all shards. It
// first looks for objects of other roles, and does not use the helper schema if it finds one there.
func (w *Wanted) Read(ctx context.Context, conn *pgx.Conn, host shards.Host, pattern string, details bool) (*Host, error) {
	h := &Host{Name: host.Name}
	var err error
	if h.Foreign, err = trust.Read(ctx, conn, w.ours(pattern)); err != nil {
		return nil, err
	}
	if h.Shards, err = w.Shard.Read(ctx, conn, pattern); err != nil {
		return nil, err
	}
	if h.Versions, err = catalog.ReadVersions(ctx, conn, pattern); err != nil {
		return nil, err
	}
	if h.Rights, err = rights.Read(ctx, conn, pattern); err != nil {
		return nil, err
	}
	if h.Foreign.HelperUsable() {
		if h.Helper, err = helperschema.Read(ctx, conn); err != nil {
			return nil, err
		}
	}
	if details {
		if h.Details, err = w.readDetails(ctx, conn, host, pattern); err != nil {
			return nil, err
		}
	}
	if w.Map.Allocates() {
		if h.KeyTables, err = keytables.Read(ctx, conn, pattern); err != nil {
			return nil, err
		}
	}
	moves, err := fences.Read(ctx, conn, w.Map, host.Name, pattern, h.Foreign.HelperUsable())
	if err != nil {
		return nil, err
	}
	h.Stopped = moves.Stopped
	for _, schema := range moves.NoShards {
		delete(h.Shards, schema)
	}
	if h.Extensions, err = extensions.Read(ctx, conn, w.Map, pattern); err != nil {
		return nil, err
	}
	h.Generators, err = generators.Read(ctx, conn, w.Map, pattern)
	return h, err
}

func (w *Wanted) readDetails(ctx context.Context, conn *pgx.Conn, host shards.Host, pattern string) (d Details, err error) {
	if d.Sequences, err = shardschema.ReadSequences(ctx, conn, pattern); err != nil {
		return d, err
	}
	names := catalog.Names(w.Shard.Script(0), w.Helper.EngineScript())
	if d.Functions, err = catalog.ReadFunctions(ctx, conn, pattern, names); err != nil {
		return d, err
	}
	if d.Defaults, err = columns.ReadDefaults(ctx, conn, pattern); err != nil {
		return d, err
	}
	if d.Narrow, err = columns.ReadNarrow(ctx, conn, pattern); err != nil {
		return d, err
	}
	d.Leads, err = leads.Read(ctx, conn, w.Map, host)
	return d, err
}
