package provision

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// helper is the schema that is on every host.
const helper = "kiloshard"

// wantedGenerator is a name of a generator in one place: a shard's schema, or the helper schema of a host.
type wantedGenerator struct {
	sql.Generator
	kind        shards.GeneratorKind
	start, step int64 // of a progression; the step of a row is 0
}

// script returns what makes it.
func (w wantedGenerator) script() string {
	switch w.kind {
	case shards.UUIDv4:
		return w.UUIDv4()
	case shards.UUIDv7:
		return w.UUIDv7()
	case shards.Row:
		return w.Row(w.start)
	}
	return w.Progression(w.start, w.step)
}

// counts reports whether a sequence makes the numbers.
func (w wantedGenerator) counts() bool { return w.step != 0 }

// generatorsOf returns the generators in a shard's schema.
func generatorsOf(m *shards.Map, n shards.Number) []wantedGenerator {
	var wanted []wantedGenerator
	for _, g := range m.Generators() {
		if g.InShards() {
			wanted = append(wanted, named(g, m.Schema(n), int(n))...)
		}
	}
	return wanted
}

// generatorsOn returns the generators in the helper schema of a host.
func generatorsOn(m *shards.Map, host shards.Host) []wantedGenerator {
	var wanted []wantedGenerator
	for _, g := range m.Generators() {
		for i, name := range g.Hosts {
			if name == host.Name {
				wanted = append(wanted, named(g, helper, i)...)
			}
		}
	}
	return wanted
}

// named returns all names of a generator in one place; i is the server's position or the shard's number.
func named(g shards.Generator, schema string, i int) []wantedGenerator {
	wanted := make([]wantedGenerator, len(g.Names))
	for k, name := range g.Names {
		w := wantedGenerator{Generator: sql.Generator{Schema: schema, Name: name}, kind: g.Kind}
		if g.Kind == shards.Tickets || g.Kind == shards.Interleaved || g.Kind == shards.CentralSequence {
			w.start, w.step = g.Progression(i)
		}
		if g.Kind == shards.Row {
			w.start, _ = g.Progression(i)
		}
		wanted[k] = w
	}
	return wanted
}

// has reports whether all that makes a generator is there.
func (inv *inventory) has(w wantedGenerator) bool {
	found := inv.generators[w.Schema]
	_, many := found.functions[functionKey{w.Function(), 1}]
	_, one := found.functions[functionKey{w.Single(), 0}]
	_, sequence := found.sequences[w.Sequence()]
	return many && one && (sequence || !w.counts())
}

func uuidv7(m *shards.Map) bool {
	for _, g := range m.Generators() {
		if g.Kind == shards.UUIDv7 {
			return true
		}
	}
	return false
}

// ProgressionError says that a sequence is there already and makes other numbers than the map says, which would
// collide with those of another server or shard.
type ProgressionError struct {
	Host, Sequence          string
	Start, Step             int64 // found
	ExpectedStart, Expected int64
}

// Error names the sequence and both progressions.
func (e *ProgressionError) Error() string {
	return fmt.Sprintf("sequence %s on %s makes %d and then every %d.; expected %d and then every %d.: the order of a generator's hosts, its `of` and its `from` may never change",
		e.Sequence, e.Host, e.Start, e.Step, e.ExpectedStart, e.Expected)
}

// clash returns a [ProgressionError] when a sequence makes other numbers than the map says.
func clash(m *shards.Map, inventories []*inventory) error {
	check := func(inv *inventory, wanted []wantedGenerator) error {
		for _, w := range wanted {
			found, ok := inv.generators[w.Schema].sequences[w.Sequence()]
			if ok && w.counts() && (found.Start != w.start || found.Increment != w.step) {
				return &ProgressionError{
					Host: inv.host.Name, Sequence: w.Schema + "." + w.Sequence(),
					Start: found.Start, Step: found.Increment, ExpectedStart: w.start, Expected: w.step,
				}
			}
		}
		return nil
	}
	for _, inv := range inventories {
		if err := check(inv, generatorsOn(m, inv.host)); err != nil {
			return err
		}
	}
	for n := range m.All().All() {
		if err := check(inventories[m.HostIndex(n)], generatorsOf(m, n)); err != nil {
			return err
		}
	}
	return nil
}
