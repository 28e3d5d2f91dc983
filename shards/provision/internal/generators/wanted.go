package generators

import (
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Generator is one name of a generator in one schema.
type Generator struct {
	sql.Generator
	kind        shards.GeneratorKind
	start, step int64 // of a progression; the step of a row is 0
}

// Wanted are the generators that a map wants, and the present versions of their scripts.
type Wanted struct {
	m        *shards.Map
	versions map[shards.GeneratorKind]string
	uuidv7   string // the version of kiloshard.uuidv7(); empty if no generator needs it
}

// For returns the generators of a map.
func For(m *shards.Map) *Wanted {
	w := &Wanted{m: m, versions: map[shards.GeneratorKind]string{}}
	for _, g := range m.Generators() {
		w.versions[g.Kind] = sql.Version(named(g, mapsql.Helper, 0)[0].Script())
		if g.Kind == shards.UUIDv7 {
			w.uuidv7 = sql.Version(sql.UUIDv7())
		}
	}
	return w
}

// InShard returns the generators in a shard's schema.
func (w *Wanted) InShard(n shards.Number) []Generator {
	var all []Generator
	for _, g := range w.m.Generators() {
		if g.InShards() {
			all = append(all, named(g, w.m.Schema(n), int(n))...)
		}
	}
	return all
}

// OnHost returns the generators in the helper schema of a host.
func (w *Wanted) OnHost(host string) []Generator {
	var all []Generator
	for _, g := range w.m.Generators() {
		if i := slices.Index(g.Hosts, host); i >= 0 {
			all = append(all, named(g, mapsql.Helper, i)...)
		}
	}
	return all
}

// named returns all names of a generator in one schema. i is the server's position or the shard's number.
func named(g shards.Generator, schema string, i int) []Generator {
	all := make([]Generator, len(g.Names))
	for k, name := range g.Names {
		one := Generator{Generator: sql.Generator{Schema: schema, Name: name}, kind: g.Kind}
		switch g.Kind {
		case shards.Tickets, shards.Interleaved, shards.CentralSequence:
			one.start, one.step = g.Progression(i)
		case shards.Row:
			one.start, _ = g.Progression(i)
		}
		all[k] = one
	}
	return all
}

// Script returns the script that creates a generator.
func (g Generator) Script() string {
	switch g.kind {
	case shards.UUIDv4:
		return g.UUIDv4()
	case shards.UUIDv7:
		return g.UUIDv7()
	case shards.Row:
		return g.Row(g.start)
	}
	return g.Progression(g.start, g.step)
}

// hasSequence reports whether a sequence makes the numbers.
func (g Generator) hasSequence() bool { return g.step != 0 }

// Objects returns the names of the tables, sequences and functions of a map's generators, in any schema.
func Objects(m *shards.Map) (relations, functions []string) {
	for _, g := range m.Generators() {
		if g.Kind == shards.Row {
			relations = append(relations, "counters")
		}
		for _, one := range named(g, mapsql.Helper, 0) {
			relations, functions = append(relations, one.Sequence()), append(functions, one.Function(), one.Single())
		}
	}
	return relations, functions
}
