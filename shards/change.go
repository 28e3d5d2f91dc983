package shards

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ChangeError says why a map must not replace another.
type ChangeError struct {
	Field string // of the config, such as epoch
	From  string // the present value
	To    string // the new value
	Why   string // the damage that it would do

	// MovesKeys says that the only problem is that keys would be in another shard than their rows, or in none. Such a map
	// is right once those rows have been moved, or if the keys have no rows yet.
	MovesKeys bool
}

// Error names the field, both values and the damage.
func (e *ChangeError) Error() string {
	return e.Field + ": from " + e.From + " to " + e.To + ": " + e.Why
}

// CheckChange reports whether the map to may replace the map from in a running cluster: every key and every ID that
// had a shard must keep it. It returns a [ChangeError] for a map
//
//   - of another cluster, or of a lower version;
//   - with another epoch, layout or schema prefix, or with fewer shards;
//   - without a generator that from has, or with one that would repeat numbers: of another kind, on other hosts, or
//     with other residue classes;
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
		return changed("epoch", moment(a.Epoch), moment(b.Epoch), "every ID made so far would have another time, and new ones could repeat old ones")
	case a.Layout != b.Layout:
		return changed("layout", a.Layout, b.Layout, "every ID made so far would be taken apart in another way")
	case a.SchemaPrefix != b.SchemaPrefix:
		return changed("schema_prefix", a.SchemaPrefix, b.SchemaPrefix, "the shards' schemas would not be found under their names any more")
	case b.Shards < a.Shards:
		return changed("shards", a.Shards, b.Shards, fmt.Sprintf("the rows of shards %s would be lost", SetOfRanges(Range{Number(b.Shards), Number(a.Shards - 1)})))
	}
	if err := checkGeneratorChange(a, b); err != nil {
		return err
	}
	if err := checkTypesChange(a, b); err != nil {
		return err
	}
	// Checked last: if a change only moves keys, everything else is right.
	return checkStrategyChange("strategy", a.Strategy, b.Strategy, a.Shards, b.Shards)
}

func changed(field string, from, to any, why string) *ChangeError {
	return &ChangeError{Field: field, From: fmt.Sprint(from), To: fmt.Sprint(to), Why: why}
}

// moment writes an epoch. It may be missing if the layout has no time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339Nano)
}

// checkGeneratorChange checks that no generator makes a number twice, and that none is removed.
func checkGeneratorChange(a, b *Config) error {
	for i, g := range a.Generators {
		for _, name := range g.Names {
			field := fmt.Sprintf("generators[%d] %s", i, name)
			next, ok := generatorOf(b, name)
			switch {
			case !ok:
				return changed(field, g.Kind, "none", "calls of next_"+name+"_id() would fail, and another generator of that name could start again at 1")
			case next.Kind != g.Kind:
				return changed(field, g.Kind, next.Kind, "it would make IDs of another kind, which could repeat those made so far")
			case next.Of != g.Of:
				return changed(field+" of", g.Of, next.Of, "its numbers would be divided differently, and repeat those made so far")
			case max(next.From, 1) != max(g.From, 1):
				return changed(field+" from", max(g.From, 1), max(next.From, 1), "its sequences have begun where the map says now")
			case !isPrefix(g.Hosts, next.Hosts):
				return changed(field+" hosts", format.Flow(g.Hosts), format.Flow(next.Hosts), "a host would make numbers that another made before; new hosts may only be added at the end of the list")
			}
			if (g.Kind == UUIDv4 || g.Kind == UUIDv7) && a.Shards != b.Shards {
				return changed("shards", a.Shards, b.Shards, "UUIDs are divided by the number of shards: nearly all that "+name+" made would be in another shard")
			}
		}
	}
	return nil
}

func generatorOf(c *Config, name string) (Generator, bool) { return (&Map{config: c}).Generator(name) }

// isPrefix reports whether all begins with first.
func isPrefix(first, all []string) bool {
	return len(all) >= len(first) && slices.Equal(first, all[:len(first)])
}

// checkStrategyChange checks that no key changes its shard.
func checkStrategyChange(at string, a, b Strategy, shardsOfA, shardsOfB int) error {
	if a.By != b.By {
		if b.By == Directory && b.Otherwise != nil { // new, so that it has no entries
			return checkStrategyChange(at+".otherwise", a, *b.Otherwise, shardsOfA, shardsOfB)
		}
		why := "nearly every key would be in another shard"
		if a.By == Directory {
			why = "the entries of the directory would be forgotten"
		}
		return changed(at+".by", a.By, b.By, why)
	}
	if b.RefuseIDs && !a.RefuseIDs {
		err := changed(at+".refuse_ids", false, true, "keys as large as IDs would have no shard")
		err.MovesKeys = true
		return err
	}
	if a.By == ByID {
		return nil
	}
	if a.By == ByRange {
		return checkRangesChange(at+".ranges", a, b)
	}
	if a.Hash != b.Hash {
		return changed(at+".hash", a.Hash, b.Hash, "nearly every key would be in another shard")
	}
	if a.Digits != b.Digits {
		return changed(at+".digits", a.Digits, b.Digits, "nearly every key would be in another shard")
	}
	if ofA, ofB := a.divisor(shardsOfA), b.divisor(shardsOfB); ofA != ofB {
		what := "nearly every key would be in another shard"
		if a.By == Directory {
			what = "nearly every entry would be looked for in another shard"
		}
		return changed(at+".of", ofA, ofB, what+"; of: "+strconv.Itoa(ofA)+" keeps them where they are")
	}
	if a.Otherwise == nil {
		return nil // all that have a shard have an entry
	}
	if b.Otherwise == nil {
		return changed(at+".otherwise", a.Otherwise, "none", "keys without an entry would have no shard")
	}
	return checkStrategyChange(at+".otherwise", *a.Otherwise, *b.Otherwise, shardsOfA, shardsOfB)
}

// divisor returns the number that the strategy divides by in a map of count shards.
func (s Strategy) divisor(count int) int {
	if s.Of != 0 {
		return s.Of
	}
	return count
}
