package provision

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// generators compares the generators of the helper schema of a host.
func (v *verification) generators(inv *inventory) {
	if uuidv7(v.m) && !inv.uuidv7 {
		v.differ(KindGenerator, inv, helper, "uuidv7 is missing", "the function; kiloshard create creates it")
	}
	if v.present.uuidv7State(inv) == old {
		v.old(inv, helper, "uuidv7", inv.versions[helper+".uuidv7"], v.present.uuidv7)
	}
	for _, w := range generatorsOn(v.m, inv.host) {
		v.generator(inv, w)
	}
	for _, g := range v.m.Generators() {
		if len(g.Hosts) > 0 && !slices.Contains(g.Hosts, inv.host.Name) {
			v.strayGenerators(inv, g)
		}
	}
}

// strayGenerators reports a generator on a host that the map does not name for it, such as a promoted standby.
func (v *verification) strayGenerators(inv *inventory, g shards.Generator) {
	for _, w := range named(g, helper, 0) {
		if inv.has(w) {
			v.differ(KindGenerator, inv, helper, w.Single()+" is here", "only on "+strings.Join(g.Hosts, ", ")+
				"; what draws from a copy gets numbers that were given before; drop it")
		}
	}
}

// generator compares one name of a generator in one place.
func (v *verification) generator(inv *inventory, w wantedGenerator) {
	found := inv.generators[w.Schema]
	isOld := v.present.generatorState(inv, w) == old
	if isOld {
		v.old(inv, w.Schema, "generator "+w.Name, inv.versions[w.Schema+"."+w.Function()], v.present.generators[w.kind])
	}
	for _, want := range sql.Functions(w.script()) {
		if !isOld {
			v.compareFunction(KindGenerator, inv, w.Schema, found.functions, want)
		}
	}
	if !w.counts() {
		return
	}
	want := sequence{Type: "bigint", Start: w.start, Increment: w.step, Min: w.start, Max: math.MaxInt64, Cache: 1, Persistence: "permanent"}
	switch sequence, ok := found.sequences[w.Sequence()]; {
	case !ok:
		v.differ(KindGenerator, inv, w.Schema, w.Sequence()+" is missing", "the sequence; kiloshard create creates it")
	case sequence != want:
		v.differ(KindGenerator, inv, w.Schema, w.Sequence()+" has "+sequence.String(), want.String())
	}
	if last, ok := found.last[w.Sequence()]; ok && (last-w.start)%w.step != 0 {
		next := last + w.step - (last-w.start)%w.step
		v.differ(KindGenerator, inv, w.Schema, fmt.Sprintf("%s is at %d, of another server's numbers", w.Sequence(), last),
			fmt.Sprintf("one of %d and then every %d.: select setval('%s.%s', %d), once it is above all numbers that were given", w.start, w.step, w.Schema, w.Sequence(), next))
	}
}

// generatorsIn compares the generators of a shard's schema on one host.
func (v *verification) generatorsIn(inv *inventory, n shards.Number) {
	for _, w := range generatorsOf(v.m, n) {
		v.generator(inv, w)
	}
}
