package generators

import (
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
)

// State compares a generator by its objects and its version. With repair, functions that were changed make it old.
func (w *Wanted) State(found Found, versions catalog.Versions, g Generator, repair bool) catalog.State {
	switch {
	case !found.has(g):
		return catalog.Missing
	case repair && found.functions[g.Schema].Changed(g.Script()):
		return catalog.Old
	}
	return versions.State(g.versioned(), w.versions[g.kind])
}

// versioned is the object whose comment holds the version.
func (g Generator) versioned() string { return g.Schema + "." + g.Function() }

// UUIDv7State compares the function kiloshard.uuidv7(), which is current if no generator needs it.
func (w *Wanted) UUIDv7State(found Found, versions catalog.Versions) catalog.State {
	switch {
	case w.uuidv7 == "":
		return catalog.Current
	case !found.uuidv7:
		return catalog.Missing
	}
	return versions.State(mapsql.Helper+".uuidv7", w.uuidv7)
}

// Clash is a sequence that makes other numbers than the map says.
type Clash struct {
	Sequence            string // with its schema
	Start, Step         int64
	WantStart, WantStep int64
}

// Clash returns the first sequence of the given generators that makes other numbers than the map says, or nil.
func (f Found) Clash(generators []Generator) *Clash {
	for _, g := range generators {
		sequence, ok := f.sequences[place{g.Schema, g.Sequence()}]
		if ok && g.hasSequence() && (sequence.Start != g.start || sequence.Increment != g.step) {
			return &Clash{
				Sequence: g.Schema + "." + g.Sequence(),
				Start:    sequence.Start, Step: sequence.Increment, WantStart: g.start, WantStep: g.step,
			}
		}
	}
	return nil
}
