package provision

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// generators compares the generators of the helper schema of a host.
func (v *verification) generators(inv *inventory) {
	if uuidv7(v.m) && !inv.uuidv7 {
		v.differ(KindGenerator, inv, helper, "uuidv7 is lacking", "the function; kiloshard create makes it")
	}
	for _, w := range generatorsOn(v.m, inv.host) {
		v.generator(inv, w)
	}
}

// generator compares one name of a generator in one place.
func (v *verification) generator(inv *inventory, w wantedGenerator) {
	found := inv.generators[w.Schema]
	for _, want := range sql.Functions(w.script()) {
		v.compareFunction(KindGenerator, inv, w.Schema, found.functions, want)
	}
	if !w.counts() {
		return
	}
	want := progression{Start: w.start, Increment: w.step, Minimum: w.start, Cache: 1, Type: "bigint"}
	switch sequence, ok := found.sequences[w.Sequence()]; {
	case !ok:
		v.differ(KindGenerator, inv, w.Schema, w.Sequence()+" is lacking", "the sequence; kiloshard create makes it")
	case sequence != want:
		v.differ(KindGenerator, inv, w.Schema, w.Sequence()+" has "+sequence.String(), want.String())
	}
}

// generatorsIn compares the generators of a shard's schema on one host.
func (v *verification) generatorsIn(inv *inventory, n shards.Number) {
	for _, w := range generatorsOf(v.m, n) {
		v.generator(inv, w)
	}
}

func (p progression) String() string {
	return fmt.Sprintf("type %s, start %d, increment %d, minimum %d, cache %d, cycle %t", p.Type, p.Start, p.Increment, p.Minimum, p.Cache, p.Cycle)
}
