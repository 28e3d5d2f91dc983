package shards

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// CheckChange reports whether the map to may replace the map from in a running cluster: every key and every ID that
// had a shard must keep it. It returns a [ChangeError] for a map
//
//   - of another cluster, or of a lower version;
//   - with another epoch, layout or schema prefix, or with fewer shards;
//   - without a generator that from has, or with one that would repeat numbers: of another kind, on other hosts, or
//     with other residue classes;
//   - with another OldIDsBelow than from has, if that has one;
//   - without a type of objects that from has, or with another number for it;
//   - with a strategy that gives a key another shard, or none, as when modulo divides by another number. A strategy may
//     accept more keys, such as a range for keys that had none; open more shards while the divisor stays
//     ([Strategy.Of]); or become a directory in which keys without an entry stay where they were.
//
// The host of a shard may change, as it does at the end of a move; CheckChange cannot tell whether the shard is on that
// host. [Map.ForBytes] divides by the number of shards, so more shards change the shards of bytes and UUIDs;
// CheckChange refuses that only if a generator of the map makes UUIDs.
func CheckChange(from, to *Map) error {
	a, b := from.config, to.config
	switch {
	case a.Cluster != b.Cluster:
		return &ChangeError{Field: "cluster", From: a.Cluster, To: b.Cluster, Why: "this is the map of another cluster"}
	case b.Version < a.Version:
		return changed("version", a.Version, b.Version, "a map never goes back to an older version")
	case !a.Epoch.Equal(b.Epoch):
		return changed("epoch", epochText(a.Epoch), epochText(b.Epoch), "every ID made so far would have another time, and new ones could repeat old ones")
	case a.Layout != b.Layout:
		return changed("layout", a.Layout, b.Layout, "every ID made so far would be taken apart in another way")
	case a.SchemaPrefix != b.SchemaPrefix:
		return changed("schema_prefix", a.SchemaPrefix, b.SchemaPrefix, "the shards' schemas would not be found under their names any more")
	case b.Shards < a.Shards:
		return changed("shards", a.Shards, b.Shards, fmt.Sprintf("the rows of shards %s would be lost", SetOfRanges(Range{Number(b.Shards), Number(a.Shards - 1)})))
	}
	if a.OldIDsBelow != 0 && a.OldIDsBelow != b.OldIDsBelow {
		return changed("old_ids_below", int64(a.OldIDsBelow), int64(b.OldIDsBelow), "IDs of old tables would be taken for those of shards, or the other way round")
	}
	// The strategy comes last: if a change only moves keys, everything else is right.
	return cmp.Or(checkGeneratorsChange(a, b), checkTypesChange(a, b), checkStrategyChange("strategy", a.Strategy, b.Strategy, a.Shards, b.Shards))
}

// epochText returns an epoch for people. Without a time in IDs it may be missing.
func epochText(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339Nano)
}

// checkGeneratorsChange checks that no generator makes a number twice, and that none is removed.
func checkGeneratorsChange(a, b *Config) error {
	for i, g := range a.Generators {
		for _, name := range g.Names {
			field := fmt.Sprintf("generators[%d] %s", i, name)
			next, ok := generatorNamed(b.Generators, name)
			switch {
			case !ok:
				return changed(field, g.Kind, "none", "calls of next_"+name+"_id() would fail, and another generator of that name could start again at 1")
			case next.Kind != g.Kind:
				return changed(field, g.Kind, next.Kind, "it would make IDs of another kind, which could repeat those made so far")
			case next.Of != g.Of:
				return changed(field+" of", g.Of, next.Of, "its numbers would be divided differently, and repeat those made so far")
			case max(next.From, 1) != max(g.From, 1):
				return changed(field+" from", max(g.From, 1), max(next.From, 1), "its sequences have begun where the map says now")
			case len(next.Hosts) < len(g.Hosts) || !slices.Equal(g.Hosts, next.Hosts[:len(g.Hosts)]):
				return changed(field+" hosts", format.Flow(g.Hosts), format.Flow(next.Hosts), "a host would make numbers that another made before; new hosts may only be added at the end of the list")
			}
			if (g.Kind == UUIDv4 || g.Kind == UUIDv7) && a.Shards != b.Shards {
				return changed("shards", a.Shards, b.Shards, "UUIDs are divided by the number of shards: nearly all that "+name+" made would be in another shard")
			}
		}
	}
	return nil
}

// checkTypesChange checks that no ID gets another type.
func checkTypesChange(a, b *Config) error {
	for _, t := range a.Types {
		i := slices.IndexFunc(b.Types, func(o ObjectType) bool { return o.Name == t.Name })
		if i < 0 {
			return changed("types "+t.Name, t.Number, "none", "nobody would know the table of its objects, and another type could take its number")
		}
		if n := b.Types[i].Number; n != t.Number {
			return changed("types "+t.Name, t.Number, n, "the IDs of its objects would be those of another type")
		}
	}
	return nil
}
