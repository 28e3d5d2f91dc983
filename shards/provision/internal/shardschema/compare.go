package shardschema

import (
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
)

// Compare adds the differences of the functions and the sequence of a shard. The functions of an old version are not
// compared one by one.
func (w *Wanted) Compare(l *difference.List, versions catalog.Versions, functions catalog.Functions, sequence Sequence, n shards.Number) {
	schema, object := w.m.Schema(n), w.versioned(n)
	isOld := functions.Has("next_id", 0) && versions.State(object, w.version) == catalog.Old
	if isOld {
		l.AddOld(schema, "the shard", versions[object], w.version)
	}
	for _, want := range w.functions(n) {
		if !isOld || !functions.Has(want.Name, want.Args) {
			functions.Compare(l, difference.Function, schema, want)
		}
	}
	want := catalog.IDSequence(w.m)
	switch {
	case sequence.Sequence == nil:
		l.Add(difference.Sequence, schema, "next_id_seq is missing", "the sequence; kiloshard create creates it")
	case *sequence.Sequence != want:
		l.Add(difference.Sequence, schema, "next_id_seq has "+sequence.String(), want.String())
	}
	if sequence.setters != "" {
		l.Add(difference.Sequence, schema, "next_id_seq: "+sequence.setters, "the schema's owner, no column, and USAGE alone for others")
	}
}
