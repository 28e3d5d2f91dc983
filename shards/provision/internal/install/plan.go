package install

import (
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Options are the objects that a [Plan] creates besides old ones.
type Options struct {
	Missing bool // also missing objects in helper schemas
	Repair  bool // also functions that were changed; the inventory needs details
}

// Plan is the work on the hosts of a map.
type Plan struct {
	wanted  *inventory.Wanted
	hosts   []*inventory.Host
	options Options
	scripts []string // by host: for its helper schema; may be empty

	Helpers    []string // hosts whose helper schema has old objects
	Generators []string // missing in helper schemas, such as "photo on tick-a"
	Extensions []string // missing, such as "citext on pg-a"

	Missing, Incomplete, Old, Current []shards.Number

	Grants []sql.Grant // for new shards
}

// New plans the work on all hosts of the map.
func New(w *inventory.Wanted, hosts []*inventory.Host, o Options) *Plan {
	p := &Plan{wanted: w, hosts: hosts, options: o, Grants: w.Grants(hosts)}
	for _, h := range hosts {
		script, isOld := p.helperScript(h)
		p.scripts = append(p.scripts, script)
		if isOld {
			p.Helpers = append(p.Helpers, h.Name)
		}
		for _, e := range h.Extensions.Missing(w.Map) {
			p.Extensions = append(p.Extensions, e.Name+" on "+h.Name)
		}
	}
	for n := range w.Map.All().All() {
		h := hosts[w.Map.HostIndex(n)]
		switch w.ShardState(h, n, o.Repair) {
		case catalog.Current:
			p.Current = append(p.Current, n)
		case catalog.Old:
			p.Old = append(p.Old, n)
		case catalog.Missing:
			if h.Shards[w.Map.Schema(n)].Ours {
				p.Incomplete = append(p.Incomplete, n)
			} else {
				p.Missing = append(p.Missing, n)
			}
		}
	}
	return p
}

// helperScript returns the script for the helper schema of a host, and whether an object there is old.
func (p *Plan) helperScript(h *inventory.Host) (script string, anyOld bool) {
	var b strings.Builder
	add := func(s catalog.State, script func() string) {
		if s == catalog.Old || s == catalog.Missing && p.options.Missing {
			b.WriteString(script())
		}
		anyOld = anyOld || s == catalog.Old
	}
	w, functions := p.wanted, h.Details.Functions[mapsql.Helper]
	add(w.Helper.EngineState(h.Helper, functions, p.options.Repair), func() string {
		script := w.Helper.EngineScript()
		return script + functions.RestorePublic(mapsql.Helper, script)
	})
	add(w.Helper.KeysState(h.Helper, h.HasShards()), w.Helper.KeysScript)
	add(w.Helper.LedgerState(h.Helper, h.Versions), sql.Ledger)
	add(w.Generators.UUIDv7State(h.Generators, h.Versions), sql.UUIDv7)
	for _, g := range w.Generators.OnHost(h.Name) {
		s := w.Generators.State(h.Generators, h.Versions, g, p.options.Repair)
		if s == catalog.Missing && p.options.Missing {
			p.Generators = append(p.Generators, g.Name+" on "+h.Name)
		}
		add(s, g.Script)
	}
	if h.Helper.Settings != nil || b.Len() > 0 {
		b.WriteString(h.Rights.HelperScript(p.Grants, b.Len() > 0))
	}
	return b.String(), anyOld
}
