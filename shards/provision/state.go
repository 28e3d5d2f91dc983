package provision

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// state is how something that kiloshard installs compares with the present version of it.
type state int

const (
	current state = iota
	old           // all of it is there, in another version
	missing       // or a part of it is
)

// present are the versions that this release installs, for one map.
type present struct {
	m                        *shards.Map
	engine, shard, keyTables string
	ledger, uuidv7, keys     string
	repairs                  bool // what somebody has changed counts as old; the inventories are detailed
	generators               map[shards.GeneratorKind]string
}

func presentOf(m *shards.Map) *present {
	p := &present{
		m: m, shard: sql.Version(sql.Shard(params(m), 0, m.Schema(0))),
		keys: keysOf(m), ledger: sql.Version(sql.Ledger()), uuidv7: sql.Version(sql.UUIDv7()), generators: map[shards.GeneratorKind]string{},
	}
	_, p.engine = sql.Engine(params(m))
	if m.Allocates() {
		p.keyTables = sql.Version(keyTablesOf(m).script(0, m.Schema(0)))
	}
	for _, g := range m.Generators() {
		p.generators[g.Kind] = sql.Version(named(g, helper, 0)[0].script())
	}
	return p
}

// changed reports whether one of the functions that a script makes is not as the script makes it.
func changed(functions map[functionKey]function, script string) bool {
	for _, want := range sql.Functions(script) {
		found, ok := functions[functionKey{want.Name, want.Args}]
		if !ok || found.Definition != want.Definition || found.Public != want.Public || found.Body != want.Body {
			return true
		}
	}
	return false
}

// publicRights returns the statements by which PUBLIC may call functions that are there, or may not. Making them again leaves that as it is.
func (inv *inventory) publicRights(schema string, functions []sql.Function) string {
	var b strings.Builder
	for _, want := range functions {
		found, ok := inv.schemas[schema].functions[functionKey{want.Name, want.Args}]
		args, _, _ := strings.Cut(want.Definition, " RETURNS ")
		switch {
		case !ok || found.Public == want.Public:
		case want.Public:
			fmt.Fprintf(&b, "GRANT EXECUTE ON FUNCTION %s.%s%s TO PUBLIC;\n", schema, want.Name, args)
		default:
			fmt.Fprintf(&b, "REVOKE EXECUTE ON FUNCTION %s.%s%s FROM PUBLIC;\n", schema, want.Name, args)
		}
	}
	return b.String()
}

// stateOf compares the version of an object that is there.
func (inv *inventory) stateOf(object, version string) state {
	if inv.versions[object] != version {
		return old
	}
	return current
}

// shardState compares all that makes a shard.
func (p *present) shardState(inv *inventory, n shards.Number) state {
	schema := p.m.Schema(n)
	if _, fenced := inv.fenced[schema]; fenced { // its mover has it
		return current
	}
	if !inv.found[schema].whole || !inv.hasKeyTables(p.m, n) {
		return missing
	}
	worst := inv.stateOf(schema+".next_id", p.shard)
	if p.m.Allocates() {
		worst = max(worst, inv.stateOf(schema+"."+keyTablesOf(p.m).marked, p.keyTables))
	}
	if p.repairs && changed(inv.schemas[schema].functions, sql.Shard(params(p.m), int(n), schema)) {
		worst = old
	}
	for _, w := range generatorsOf(p.m, n) {
		worst = max(worst, p.generatorState(inv, w))
	}
	return worst
}

// generatorState compares one name of a generator in one place.
func (p *present) generatorState(inv *inventory, w wantedGenerator) state {
	if !inv.has(w) {
		return missing
	}
	if p.repairs && changed(inv.generators[w.Schema].functions, w.script()) {
		return old
	}
	return inv.stateOf(w.Schema+"."+w.Function(), p.generators[w.kind])
}

// uuidv7State compares the function of the helper schema.
func (p *present) uuidv7State(inv *inventory) state {
	switch {
	case !uuidv7(p.m):
		return current
	case !inv.uuidv7:
		return missing
	}
	return inv.stateOf(helper+".uuidv7", p.uuidv7)
}

// engineState compares the helper schema's own functions.
func (p *present) engineState(inv *inventory) state {
	switch {
	case inv.settings == nil:
		return missing
	case inv.settings.Engine != p.engine:
		return old
	case p.repairs:
		if script, _ := sql.Engine(params(p.m)); changed(inv.schemas[helper].functions, script) {
			return old
		}
	}
	return current
}

// keysState compares the strategy that the helper schema records.
func (p *present) keysState(inv *inventory) state {
	switch {
	case inv.settings == nil:
		return missing
	case inv.settings.Keys == p.keys, inv.settings.Keys != "" && shards.CheckKeys(inv.settings.Keys, p.keys) != nil && inv.holdsShards():
		return current // or of a newer map
	case inv.settings.Keys == "":
		return old
	}
	return missing // it records what a command of before knew
}

// holdsShards reports whether a host has any shard.
func (inv *inventory) holdsShards() bool {
	for _, found := range inv.found {
		if found.ours {
			return true
		}
	}
	return false
}

// checkKeys returns an error for each host that holds shards whose keys go by another strategy.
func checkKeys(m *shards.Map, inventories []*inventory) error {
	var errs []error
	for _, inv := range inventories {
		if inv.settings == nil || inv.settings.Cluster != m.Config().Cluster || !inv.holdsShards() {
			continue
		}
		if err := connect.CheckKeys(inv.settings.Keys, keysOf(m)); err != nil {
			errs = append(errs, &shards.HostError{Host: inv.host.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// keysOf returns what the hosts of a map record of its strategy.
func keysOf(m *shards.Map) string {
	id, _ := m.Hosts()[0].Identity()
	return id.Keys
}

// ledgerState compares the ledger of migrations, which migrate makes where it is missing.
func (p *present) ledgerState(inv *inventory) state {
	if !inv.ledger {
		return current
	}
	return inv.stateOf(helper+".ledger", p.ledger)
}
