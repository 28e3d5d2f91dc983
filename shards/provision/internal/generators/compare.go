package generators

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// CompareHost adds the differences of the generators in the helper schema of a host.
func (w *Wanted) CompareHost(l *difference.List, found Found, versions catalog.Versions, host string) {
	switch w.UUIDv7State(found, versions) {
	case catalog.Missing:
		l.Add(difference.Generator, mapsql.Helper, "uuidv7 is missing", "the function; kiloshard create creates it")
	case catalog.Old:
		l.AddOld(mapsql.Helper, "uuidv7", versions[mapsql.Helper+".uuidv7"], w.uuidv7)
	}
	for _, g := range w.OnHost(host) {
		w.compare(l, found, versions, g)
	}
	for _, g := range w.m.Generators() {
		if len(g.Hosts) > 0 && !slices.Contains(g.Hosts, host) {
			compareStray(l, found, g)
		}
	}
}

// CompareShard adds the differences of the generators in a shard's schema.
func (w *Wanted) CompareShard(l *difference.List, found Found, versions catalog.Versions, n shards.Number) {
	for _, g := range w.InShard(n) {
		w.compare(l, found, versions, g)
	}
}

// compareStray adds a generator on a host that the map does not name for it, such as a promoted standby.
func compareStray(l *difference.List, found Found, generator shards.Generator) {
	for _, g := range named(generator, mapsql.Helper, 0) {
		if found.has(g) {
			l.Add(difference.Generator, mapsql.Helper, g.Single()+" is here",
				"only on "+strings.Join(generator.Hosts, ", ")+"; a copy repeats numbers; drop it")
		}
	}
}

func (w *Wanted) compare(l *difference.List, found Found, versions catalog.Versions, g Generator) {
	if w.State(found, versions, g, false) == catalog.Old {
		l.AddOld(g.Schema, "generator "+g.Name, versions[g.versioned()], w.versions[g.kind])
	} else {
		for _, want := range sql.Functions(g.Script()) {
			found.functions[g.Schema].Compare(l, difference.Generator, g.Schema, want)
		}
	}
	if g.hasSequence() {
		g.compareSequence(l, found)
	}
}

func (g Generator) compareSequence(l *difference.List, found Found) {
	at := place{g.Schema, g.Sequence()}
	want := catalog.Sequence{
		Type: "bigint", Start: g.start, Increment: g.step, Min: g.start, Max: math.MaxInt64, Cache: 1, Persistence: "permanent",
	}
	switch sequence, ok := found.sequences[at]; {
	case !ok:
		l.Add(difference.Generator, g.Schema, g.Sequence()+" is missing", "the sequence; kiloshard create creates it")
	case sequence != want:
		l.Add(difference.Generator, g.Schema, g.Sequence()+" has "+sequence.String(), want.String())
	}
	if last, ok := found.last[at]; ok && (last-g.start)%g.step != 0 {
		next := last + g.step - (last-g.start)%g.step
		l.Add(difference.Generator, g.Schema, fmt.Sprintf("%s is at %d, of another server's numbers", g.Sequence(), last),
			fmt.Sprintf("one of %d and then every %d.: select setval('%s.%s', %d), once it is above all numbers that were given",
				g.start, g.step, g.Schema, g.Sequence(), next))
	}
}
