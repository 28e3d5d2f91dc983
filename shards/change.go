package shards

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ChangeError says why a map must not follow another.
type ChangeError struct {
	Field string // of the config, such as epoch
	From  string // what it is
	To    string // what it would be
	Why   string // what that would do

	// MovesKeys says that nothing is wrong but that keys would be in another shard than their rows, or in none. That is
	// right once their rows have been moved, and for keys that nobody has used yet.
	MovesKeys bool
}

// Error says what would change, and what that would do.
func (e *ChangeError) Error() string {
	return e.Field + ": from " + e.From + " to " + e.To + ": " + e.Why
}

// CheckChange reports whether the map to may follow the map from in a living cluster, so that every key and every ID that
// had a shard keeps it. It returns a [ChangeError] for one
//
//   - of another cluster, or of a lower version;
//   - with another epoch, layout or schema prefix, or with fewer shards;
//   - without a generator that there was, or with one that would make numbers again: of another kind, on other hosts, or
//     with other residue classes;
//   - without a type of objects that there was, or with another number for it;
//   - with a strategy by which a key has another shard, or none any more, as when modulo divides by another number. What
//     it may do: take more keys in, such as a range for keys that had none; open more shards where the divisor stays
//     ([Strategy.Of]); become a directory in which keys without an entry are where they were.
//
// The home of a shard may change: that is what moving a shard ends with. Whether the shard is there the maps do not
// tell. [Map.ForBytes] divides by the number of shards, so that more shards give other bytes and UUIDs other shards;
// CheckChange refuses that only where a generator of the map makes UUIDs.
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
	// The last, so that a change which only moves keys is known to be right in all else.
	return checkStrategyChange("strategy", a.Strategy, b.Strategy, a.Shards, b.Shards)
}

func changed(field string, from, to any, why string) *ChangeError {
	return &ChangeError{Field: field, From: fmt.Sprint(from), To: fmt.Sprint(to), Why: why}
}

// moment writes an epoch, which a layout without a time may do without.
func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339Nano)
}

// checkGeneratorChange holds the rule that no generator makes a number twice, and that none is lost.
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
			case !isPrefix(g.Hosts, next.Hosts):
				return changed(field+" hosts", flow(g.Hosts, plain), flow(next.Hosts, plain), "a host would make numbers that another made before; more hosts may only be added behind those there are")
			}
			if (g.Kind == UUIDv4 || g.Kind == UUIDv7) && a.Shards != b.Shards {
				return changed("shards", a.Shards, b.Shards, "UUIDs are divided by the number of shards: nearly all that "+name+" made would be in another shard")
			}
		}
	}
	return nil
}

func generatorOf(c *Config, name string) (Generator, bool) { return (&Map{config: c}).Generator(name) }

// isPrefix reports whether all is what first is and perhaps more.
func isPrefix(first, all []string) bool {
	return len(all) >= len(first) && slices.Equal(first, all[:len(first)])
}

// checkStrategyChange holds the rule that no key changes its shard.
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
		err := changed(at+".refuse_ids", false, true, "keys as large as IDs are would have no shard any more")
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
		return changed(at+".otherwise", a.Otherwise, "none", "keys without an entry would have no shard any more")
	}
	return checkStrategyChange(at+".otherwise", *a.Otherwise, *b.Otherwise, shardsOfA, shardsOfB)
}

// divisor returns by what the strategy divides where the map has count shards.
func (s Strategy) divisor(count int) int {
	if s.Of != 0 {
		return s.Of
	}
	return count
}
