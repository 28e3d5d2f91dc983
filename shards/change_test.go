package shards_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// changes are made to a map of 8 shards on pg-a and pg-b. refused is a part of the error, empty for a change that is
// accepted.
var changes = []struct {
	name    string
	before  func(*shards.Config)
	change  func(*shards.Config)
	refused string
	keys    bool // refused only for what it does to keys
}{
	{name: "nothing"},
	{name: "a version more", before: version(3), change: version(4)},
	{name: "a lower version", before: version(3), change: version(2), refused: "version: from 3 to 2: a map never goes back"},
	{name: "no version", before: version(3), refused: "version: from 3 to 0: a map never goes back", change: version(0)},
	{name: "another cluster", change: func(c *shards.Config) { c.Cluster = "videos" }, refused: "cluster: from photos to videos: this is the map of another cluster"},
	{name: "another epoch", change: func(c *shards.Config) { c.Epoch = c.Epoch.Add(time.Hour) }, refused: "epoch: from 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z: every ID made so far would have another time"},
	{name: "the same epoch elsewhere", change: func(c *shards.Config) { c.Epoch = c.Epoch.In(time.FixedZone("", 3600)) }},
	{name: "another layout", change: func(c *shards.Config) { c.Layout = shards.Layout{Time: 40, Shard: 13, Sequence: 10} }, refused: "layout: from 41|13|10 to 40|13|10: every ID"},
	{name: "another prefix", change: func(c *shards.Config) { c.SchemaPrefix = "s_" }, refused: "schema_prefix: from shard_ to s_: the shards' schemas would not be found"},
	{name: "fewer shards", change: grow(7, 0), refused: "shards: from 8 to 7: the rows of shards 7 would be lost"},
	{name: "half the shards", change: grow(4, 0), refused: "shards: from 8 to 4: the rows of shards 4-7 would be lost"},

	{name: "a type of objects", change: types(shards.ObjectType{Name: "pin", Number: 1})},
	{name: "one type more", before: types(shards.ObjectType{Name: "pin", Number: 1}), change: types(shards.ObjectType{Name: "board"}, shards.ObjectType{Name: "pin", Number: 1})},
	{name: "a type less", before: types(shards.ObjectType{Name: "pin", Number: 1}), refused: "types pin: from 1 to none: nobody would know the table", change: types()},
	{name: "another number of a type", before: types(shards.ObjectType{Name: "pin", Number: 1}), refused: "types pin: from 1 to 2: the IDs of its objects", change: types(shards.ObjectType{Name: "pin", Number: 2})},

	{name: "old IDs", change: oldIDs(1 << 40)},
	{name: "other old IDs", before: oldIDs(1 << 40), change: oldIDs(1 << 41), refused: "old_ids_below: from 1099511627776 to 2199023255552: IDs of old tables"},
	{name: "no old IDs any more", before: oldIDs(1 << 40), change: oldIDs(0), refused: "old_ids_below: from 1099511627776 to 0: IDs of old tables"},

	{name: "another home", change: func(c *shards.Config) { c.Placement[0].Host, c.Placement[1].Host = "pg-b", "pg-a" }},
	{name: "one more host", change: func(c *shards.Config) { c.Hosts = append(c.Hosts, shards.Host{Name: "pg-c", DSN: "host=c"}) }},
	{name: "what only the router asks", change: func(c *shards.Config) {
		c.Hosts[0].DSN, c.Hosts[1].Weight, c.SearchPath, c.Migrations = "host=other", 5, []string{"extensions"}, "./sql"
	}},

	{name: "more shards by modulo", change: grow(16, 0), refused: "strategy.of: from 8 to 16: nearly every key would be in another shard; of: 8 keeps them where they are"},
	{name: "more shards, the divisor kept", change: grow(16, 8)},
	{name: "the divisor written down", change: grow(8, 8)},
	{name: "the divisor left out, as it is", before: grow(8, 8), change: grow(8, 0)},
	{name: "the divisor left out, which makes it more", before: grow(8, 4), change: grow(8, 0), refused: "strategy.of: from 4 to 8"},
	{name: "modulo to a hash", change: strategy(byXXHash), refused: "strategy.by: from modulo to hash: nearly every key"},
	{name: "another hash", before: strategy(byXXHash), change: strategy(byMD5), refused: "strategy.hash: from xxhash to md5"},
	{name: "other digits", before: strategy(byHex), change: strategy(shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: 4}), refused: "strategy.digits: from 8 to 4"},
	{name: "the default digits written down", before: strategy(byHex), change: strategy(shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: 8})},

	{name: "keys that are IDs to a directory beside it", before: strategy(byID), change: strategy(directoryOf(&byID))},
	{name: "more shards where keys are IDs", before: strategy(byID), change: func(c *shards.Config) { grow(16, 0)(c); c.Strategy = byID }},
	{name: "another way to allocate IDs", before: strategy(byID), change: strategy(shards.Strategy{By: shards.ByID, Allocate: shards.Allocation{By: shards.LeastUsed}})},
	{name: "modulo to keys that are IDs", change: strategy(byID), refused: "strategy.by: from modulo to id: nearly every key"},
	{name: "keys that are IDs to modulo", before: strategy(byID), change: strategy(shards.Strategy{}), refused: "strategy.by: from id to modulo: nearly every key"},
	{name: "IDs refused", change: strategy(shards.Strategy{RefuseIDs: true}), refused: "strategy.refuse_ids: from false to true: keys as large as IDs would have no shard", keys: true},
	{name: "IDs no longer refused", before: strategy(shards.Strategy{RefuseIDs: true}), change: strategy(shards.Strategy{})},

	{name: "modulo to a directory", change: strategy(directoryOf(&shards.Strategy{By: shards.Modulo}))},
	{name: "modulo to a directory of nothing", change: strategy(directoryOf(nil)), refused: "strategy.by: from modulo to directory: nearly every key"},
	{name: "modulo to a directory of something else", change: strategy(directoryOf(&byXXHash)), refused: "strategy.otherwise.by: from modulo to hash"},
	{name: "a directory to what its rest was", before: strategy(directoryOf(&byXXHash)), change: strategy(byXXHash), refused: "strategy.by: from directory to hash: the entries of the directory would be forgotten"},
	{name: "more shards in a directory", before: strategy(directoryOf(nil)), change: func(c *shards.Config) { grow(16, 0)(c) }, refused: "strategy.of: from 8 to 16: nearly every entry would be looked for in another shard; of: 8"},
	{name: "more shards in a directory, its entries kept", before: strategy(directoryOf(nil)), change: grow(16, 8)},
	{name: "more shards, a directory's rest moved", before: strategy(directoryOf(&byXXHash)), change: grow(16, 8), refused: "strategy.otherwise.of: from 8 to 16"},
	{name: "a place for keys without an entry", before: strategy(directoryOf(nil)), change: strategy(directoryOf(&byXXHash))},
	{name: "no place for keys without an entry", before: strategy(directoryOf(&byXXHash)), change: strategy(directoryOf(nil)), refused: "strategy.otherwise: from {by: hash, hash: xxhash} to none"},
	{name: "another way to allocate", before: strategy(directoryOf(nil)), change: func(c *shards.Config) {
		c.Strategy.Allocate = shards.Allocation{By: shards.LeastUsed, Capacity: 5}
	}},

	{name: "ranges, more shards", before: rangesOf("0-100>0"), change: both(grow(16, 0), rangesOf("0-100>0 100->15"))},
	{name: "ranges, more shards that no key is in", before: rangesOf("0->0"), change: grow(16, 0)},
	{name: "a range cut in two, both in the shard", before: rangesOf("0-100>0"), change: rangesOf("0-50>0 50-100>0")},
	{name: "two ranges put together", before: rangesOf("0-50>3 50-100>3"), change: rangesOf("-10-200>3")},
	{name: "a gap filled", before: rangesOf("0-50>1 80->2"), change: rangesOf("0-50>1 50-80>3 80->2")},
	{name: "a split", before: rangesOf("0->0"), change: rangesOf("0->0 1000->1"), refused: "strategy.ranges: from shard 0 for key 1000 to shard 1: the rows of this key and those after it would stay behind", keys: true},
	{name: "a range ended", before: rangesOf("0->0"), change: rangesOf("0-1000>0"), refused: "strategy.ranges: from shard 0 for key 1000 to none", keys: true},
	{name: "a range begun later", before: rangesOf("0->0"), change: rangesOf("1->0"), refused: "strategy.ranges: from shard 0 for key 0 to none", keys: true},
	{name: "the last of two ranges ended", before: rangesOf("0-50>0 50->1"), change: rangesOf("0-50>0 50-60>1"), refused: "from shard 1 for key 60 to none", keys: true},
	{name: "a hole", before: rangesOf("0->0"), change: rangesOf("0-5>0 6->0"), refused: "from shard 0 for key 5 to none", keys: true},
	{name: "ranges that go on, more shards", before: next("0->0", 1000), change: both(grow(16, 0), next("0->0", 1000))},
	{name: "a range that goes on, written down", before: next("0->0", 1000), change: next("0-1000>0 1000->1", 1000)},
	{name: "ranges that go on", before: rangesOf("0-1000>0"), change: next("0->0", 1000)},
	{name: "the last range made to go on", before: rangesOf("0->0"), change: next("0->0", 1000), refused: "strategy.ranges: from shard 0 for key 1000 to shard 1", keys: true},
	{name: "ranges that go on in other steps", before: next("0->0", 1000), change: next("0->0", 500), refused: "strategy.ranges: from shard 0 for key 500 to shard 1", keys: true},
	{name: "ranges that go on no more", before: next("0->0", 1000), change: rangesOf("0-1000>0 1000-2000>1"), refused: "strategy.ranges: from shard 2 for key 2000 to none", keys: true},
	{name: "texts", before: texts("a>0 m>1"), change: texts("a>0 f>0 m>1")},
	{name: "texts, another shard", before: texts("a>0 m>1"), change: texts("a>0 f>2 m>1"), refused: `from shard 0 for key "f" to shard 2`, keys: true},
	{name: "numbers to texts", before: rangesOf("0->0"), change: texts(">0"), refused: `strategy.ranges: from 0 and on to "" and on: numbers and texts have different orders`},
	{name: "ranges to modulo", before: rangesOf("0->0"), change: strategy(shards.Strategy{}), refused: "strategy.by: from range to modulo"},
	{
		name: "a directory over ranges, one of them split", before: overDirectory(rangesOf("0->0 50->1")), change: overDirectory(rangesOf("0->0 50->1 70->5")),
		refused: "strategy.otherwise.ranges: from shard 1 for key 70 to shard 5", keys: true,
	},

	{name: "a generator", change: makes(shards.Generator{Kind: shards.Tickets, Names: []string{"photo"}, Hosts: []string{"pg-a", "pg-b"}})},
	{name: "no generator", before: makes(photos()), change: makes(), refused: "generators[0] photo: from tickets to none: calls of next_photo_id() would fail"},
	{name: "a generator's second name gone", before: makes(photos("photo", "album")), change: makes(photos("photo")), refused: "generators[0] album: from tickets to none"},
	{name: "names taken apart", before: makes(photos("photo", "album")), change: makes(photos("album", "likes"), photos("photo"))},
	{name: "another kind", before: makes(photos()), change: makes(shards.Generator{Kind: shards.Interleaved, Names: []string{"photo"}}), refused: "generators[0] photo: from tickets to interleaved: it would make IDs of another kind"},
	{name: "servers in another order", before: makes(photos()), change: func(c *shards.Config) { c.Generators[0].Hosts = []string{"pg-b", "pg-a"} }, refused: "generators[0] photo hosts: from [pg-a, pg-b] to [pg-b, pg-a]: a host would make numbers that another made before"},
	{name: "one more server for a class that was left", before: makes(photos()), change: func(c *shards.Config) {
		c.Hosts = append(c.Hosts, shards.Host{Name: "pg-c", DSN: "host=c"})
		c.Generators[0].Hosts = []string{"pg-a", "pg-b", "pg-c"}
	}},
	{
		name: "one server less", before: both(func(c *shards.Config) { c.Hosts = append(c.Hosts, shards.Host{Name: "pg-c", DSN: "host=c"}) }, makes(shards.Generator{Kind: shards.Tickets, Names: []string{"photo"}, Hosts: []string{"pg-a", "pg-c", "pg-b"}, Of: 4})),
		change: func(c *shards.Config) { c.Generators[0].Hosts = []string{"pg-a", "pg-c"} }, refused: "hosts: from [pg-a, pg-c, pg-b] to [pg-a, pg-c]",
	},
	{name: "another first number", before: makes(photos()), change: func(c *shards.Config) { c.Generators[0].From = 8 }, refused: "generators[0] photo from: from 1 to 8: its sequences have begun"},
	{name: "the first number by default, written out", before: makes(photos()), change: func(c *shards.Config) { c.Generators[0].From = 1 }},
	{name: "numbers divided differently", before: makes(photos()), change: func(c *shards.Config) { c.Generators[0].Of = 8 }, refused: "generators[0] photo of: from 4 to 8: its numbers would be divided differently"},
	{
		name: "a sequence on another host", before: makes(shards.Generator{Kind: shards.CentralSequence, Names: []string{"n"}, Hosts: []string{"pg-a"}}),
		change: func(c *shards.Config) { c.Generators[0].Hosts = []string{"pg-b"} }, refused: "generators[0] n hosts: from [pg-a] to [pg-b]",
	},
	{name: "more shards of interleaved numbers", before: makes(shards.Generator{Kind: shards.Interleaved, Names: []string{"n"}}), change: grow(16, 8)},
	{name: "more shards where UUIDs are made", before: makes(shards.Generator{Kind: shards.UUIDv7, Names: []string{"n"}}), change: grow(16, 8), refused: "shards: from 8 to 16: UUIDs are divided by the number of shards"},
}

func version(v int) func(*shards.Config) { return func(c *shards.Config) { c.Version = v } }

func strategy(s shards.Strategy) func(*shards.Config) {
	return func(c *shards.Config) { c.Strategy = s }
}

func directoryOf(otherwise *shards.Strategy) shards.Strategy {
	return shards.Strategy{By: shards.Directory, Otherwise: otherwise}
}

// overDirectory puts a directory before a strategy.
func overDirectory(otherwise func(*shards.Config)) func(*shards.Config) {
	return func(c *shards.Config) {
		otherwise(c)
		s := c.Strategy
		c.Strategy = directoryOf(&s)
	}
}

// grow gives the map count shards and its strategy a divisor.
func grow(count, of int) func(*shards.Config) {
	return func(c *shards.Config) {
		c.Shards, c.Placement, c.Strategy.Of = count, shards.Evenly(count, c.Hosts), of
	}
}

func both(a, b func(*shards.Config)) func(*shards.Config) {
	return func(c *shards.Config) { a(c); b(c) }
}

func photos(names ...string) shards.Generator {
	if names == nil {
		names = []string{"photo"}
	}
	return shards.Generator{Kind: shards.Tickets, Names: names, Hosts: []string{"pg-a", "pg-b"}, Of: 4}
}

func makes(g ...shards.Generator) func(*shards.Config) {
	return func(c *shards.Config) { c.Generators = g }
}

func TestCheckChange(t *testing.T) {
	t.Parallel()
	for _, test := range changes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			made := func(changes ...func(*shards.Config)) *shards.Map {
				c := newConfig(8)
				for _, change := range changes {
					if change != nil {
						change(&c)
					}
				}
				m, err := c.Map()
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			err := shards.CheckChange(made(test.before), made(test.before, test.change))
			if test.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *shards.ChangeError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), test.refused) || e.MovesKeys != test.keys {
				t.Fatalf("got %v (moves keys: %v), expected %s (%v)", err, e != nil && e.MovesKeys, test.refused, test.keys)
			}
		})
	}
}

// A config that places a shard on two hosts, or on none, makes no map.
func TestNoMapLosesAShard(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*shards.Config)
		err    string
	}{
		{"two homes", func(c *shards.Config) { c.Placement[1].Shards = shards.SetOfRanges(shards.Range{First: 2, Last: 7}) }, "placement[1].shards: shard 2, which placement[0] puts on pg-a already; expected each shard once"},
		{"no home", func(c *shards.Config) { c.Placement[0].Shards = shards.SetOf(0, 1) }, "placement: no host for 1 shards, the first of them 2"},
		{"a host that is gone", func(c *shards.Config) { c.Hosts = c.Hosts[:1] }, `placement[1].host: "pg-b"; expected one of the hosts pg-a`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newConfig(8)
			test.change(&c)
			var e *shards.FieldError
			if _, err := c.Map(); !errors.As(err, &e) || !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got %v, expected %s", err, test.err)
			}
		})
	}
}

// If CheckChange accepts a change, each key and each ID keeps its shard.
func TestChangesThatMayBeMadeKeepKeys(t *testing.T) {
	t.Parallel()
	allowed, others := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := smallMap(t, "from")
		b := changedMap(t, a)
		if err := shards.CheckChange(a, b); err != nil {
			return
		}
		allowed++
		if a.Strategy().String() != b.Strategy().String() {
			others++
		}
		for _, key := range keysNear(a, b) {
			if n, err := shardOf(a, key); err == nil {
				if next, err := shardOf(b, key); err != nil || next != n {
					t.Fatalf("key %v was in shard %d, now %d, %v: from\n%v\nto\n%v", key, n, next, err, a.Strategy(), b.Strategy())
				}
			}
			if a.HasDirectory() && a.EntryShard(key) != b.EntryShard(key) {
				t.Fatalf("the entry of %v is not found: from %v to %v", key, a.Strategy(), b.Strategy())
			}
		}
		for range 20 {
			id := shards.ID(rapid.Int64Min(0).Draw(t, "id"))
			if n, err := a.ForID(id); err == nil {
				if next, err := b.ForID(id); err != nil || next != n {
					t.Fatalf("ID %d was in shard %d, now %d, %v", id, n, next, err)
				}
			}
		}
	})
	if allowed == 0 || others == 0 {
		t.Errorf("%d changes were allowed, %d of them of the strategy: this has tested nothing", allowed, others)
	}
}

// A service that watches a store may skip versions: if each change is accepted, so is the change from the first to the last.
func TestChangesMayBeSkipped(t *testing.T) {
	t.Parallel()
	skipped := 0
	rapid.Check(t, func(t *rapid.T) {
		a := smallMap(t, "from")
		b := changedMap(t, a)
		c := changedMap(t, b)
		if shards.CheckChange(a, b) != nil || shards.CheckChange(b, c) != nil {
			return
		}
		skipped++
		if err := shards.CheckChange(a, c); err != nil {
			t.Fatalf("%v: from\n%v\nby\n%v\nto\n%v", err, a.Strategy(), b.Strategy(), c.Strategy())
		}
	})
	if skipped == 0 {
		t.Error("no change was skipped: this has tested nothing")
	}
}

// shardOf returns the shard of a key, of one without an entry where there is a directory.
func shardOf(m *shards.Map, key shards.Key) (shards.Number, error) {
	if m.HasDirectory() {
		return m.Otherwise(key)
	}
	return m.For(key)
}

// smallMap draws a map so small that two of them are often alike.
func smallMap(t *rapid.T, label string) *shards.Map {
	c := newConfig(rapid.IntRange(1, 4).Draw(t, label+" shards"))
	c.Placement = shards.Evenly(c.Shards, c.Hosts)
	c.Strategy = smallStrategy(t, c.Shards, true)
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changedMap draws a map that differs from another in its shards, in its strategy, or in both.
func changedMap(t *rapid.T, from *shards.Map) *shards.Map {
	c := from.Config()
	if rapid.Bool().Draw(t, "more shards") {
		c.Shards += rapid.IntRange(1, 2).Draw(t, "opened")
		c.Placement = shards.Evenly(c.Shards, c.Hosts)
	}
	switch rapid.IntRange(0, 3).Draw(t, "new strategy") {
	case 0:
		if c.Strategy.By != shards.ByID {
			c.Strategy.Of = rapid.SampledFrom([]int{0, from.Len()}).Draw(t, "of")
		}
	case 1:
		if s := c.Strategy; s.By != shards.Directory {
			s.Allocate = shards.Allocation{}
			c.Strategy = directoryOf(&s)
		}
	default:
		c.Strategy = smallStrategy(t, c.Shards, true)
	}
	if c.Strategy.By == shards.ByRange {
		c.Strategy.Of = 0
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func smallStrategy(t *rapid.T, count int, outermost bool) shards.Strategy {
	of := rapid.IntRange(0, count).Draw(t, "of")
	switch by := rapid.IntRange(0, 8).Draw(t, "by"); {
	case by == 0:
		return shards.Strategy{By: shards.Modulo, Of: of, RefuseIDs: rapid.Bool().Draw(t, "refuse IDs")}
	case by == 8:
		return shards.Strategy{By: shards.ByID}
	case by == 1:
		return shards.Strategy{By: shards.Hash, Of: of}
	case by == 2 && outermost:
		return shards.Strategy{By: shards.Directory, Of: of}
	case by == 3 && outermost:
		otherwise := smallStrategy(t, count, false)
		return shards.Strategy{By: shards.Directory, Of: of, Otherwise: &otherwise}
	}
	s := shards.Strategy{By: shards.ByRange}
	text := rapid.Bool().Draw(t, "texts")
	key := func(n int) shards.Key {
		if text {
			return shards.TextKey(string(rune('a' + n)))
		}
		return shards.NumberKey(int64(n))
	}
	for at := rapid.IntRange(0, 2).Draw(t, "from"); at < 6; {
		end := at + rapid.IntRange(1, 3).Draw(t, "length")
		r := shards.KeyRange{From: key(at), Shard: shards.Number(rapid.IntRange(0, min(1, count-1)).Draw(t, "shard"))}
		if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
			r.To = key(end)
		}
		s.Ranges = append(s.Ranges, r)
		at = end + rapid.IntRange(0, 1).Draw(t, "gap")
	}
	return s
}

// keysNear returns keys around the bounds of all ranges.
func keysNear(maps ...*shards.Map) []shards.Key {
	var keys []shards.Key
	for n := range int64(12) {
		keys = append(keys, shards.NumberKey(n-1), shards.TextKey(string(rune('a'+n))), shards.TextKey(string(rune('a'+n))+"x"))
	}
	for n := range int64(5) { // IDs of a day after the epoch
		keys = append(keys, shards.NumberKey(86_400_000<<23|n<<10))
	}
	return append(keys, shards.NumberKey(-1<<63), shards.NumberKey(1<<63-1), shards.TextKey(""), shards.TextKey("\U0010ffff"))
}

func types(all ...shards.ObjectType) func(*shards.Config) {
	return func(c *shards.Config) { c.Types = all }
}
