package shards_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// mapOf returns a map of count shards with a strategy.
func mapOf(t testing.TB, count int, s shards.Strategy) *shards.Map {
	t.Helper()
	c := newConfig(count)
	c.Strategy = s
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	byXXHash = shards.Strategy{By: shards.Hash}
	byMD5    = shards.Strategy{By: shards.Hash, Hash: shards.MD5}
	byHex    = shards.Strategy{By: shards.Hash, Hash: shards.Hex}
)

// The values are those of other programs: of Python's hashlib, and of the test vectors of xxHash.
func TestHashesAreThoseOfOthers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		strategy shards.Strategy
		count    int
		key      string
		shard    shards.Number
	}{
		{"md5, as Pinterest's", byMD5, 4096, "1.2.3.4", 1537},
		{"md5 of a number", byMD5, 2000, "42", 1174},
		{"md5 of a negative number", byMD5, 2000, "-1", 1592},
		{"md5 of a name", byMD5, 2000, "alice", 300},
		{"md5 of nothing", byMD5, 2000, "", 366},
		{"md5 of the largest number", byMD5, 2000, "9223372036854775807", 1639},
		{"md5 of what is no ASCII", byMD5, 2000, "größe", 363},
		{"8 digits", byHex, 2000, "42", 184},
		{"3 digits", shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: 3}, 4096, "alice", 1592},
		{"16 digits", shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: 16}, 2000, "alice", 917},
		{"xxhash of nothing", byXXHash, 4096, "", 2457},
		{"xxhash of a", byXXHash, 2000, "a", 955},
		{"xxhash of abc", byXXHash, 4096, "abc", 2457},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := mapOf(t, test.count, test.strategy)
			if n, err := m.ForText(test.key); err != nil || n != test.shard {
				t.Errorf("text: got %d, %v, expected %d", n, err, test.shard)
			}
			number, err := strconv.ParseInt(test.key, 10, 64)
			if err != nil {
				return
			}
			if n, err := m.ForKey(number); err != nil || n != test.shard {
				t.Errorf("number: got %d, %v, expected %d", n, err, test.shard)
			}
		})
	}
}

// strategies draws valid strategies.
func strategies(count int) *rapid.Generator[shards.Strategy] {
	return rapid.Custom(func(t *rapid.T) shards.Strategy {
		s := arithmetic(count).Draw(t, "arithmetic")
		switch rapid.IntRange(0, 3).Draw(t, "directory") {
		case 0:
			return shards.Strategy{By: shards.ByID, Allocate: shards.Allocation{Capacity: rapid.IntRange(0, 100).Draw(t, "capacity")}}
		case 1:
			return s
		}
		d := shards.Strategy{By: shards.Directory, Allocate: shards.Allocation{
			By:       rapid.SampledFrom([]string{"", shards.Weighted, shards.LeastUsed, shards.MostLeft}).Draw(t, "allocate"),
			Capacity: rapid.IntRange(1, 100).Draw(t, "capacity"),
		}}
		if rapid.Bool().Draw(t, "otherwise") {
			d.Otherwise = &s
		}
		return d
	})
}

// arithmetic draws valid strategies that ask no directory.
func arithmetic(count int) *rapid.Generator[shards.Strategy] {
	return rapid.Custom(func(t *rapid.T) shards.Strategy {
		of := rapid.IntRange(0, count).Draw(t, "of")
		switch rapid.IntRange(0, 6).Draw(t, "by") {
		case 0:
			return shards.Strategy{
				By: rapid.SampledFrom([]string{"", shards.Modulo}).Draw(t, "modulo"), Of: of, RefuseIDs: rapid.Bool().Draw(t, "refuse IDs"),
			}
		case 4:
			return shards.Strategy{By: shards.ByID}
		case 1:
			return shards.Strategy{By: shards.Hash, Hash: rapid.SampledFrom([]string{"", shards.XXHash, shards.MD5}).Draw(t, "hash"), Of: of}
		case 2:
			return shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: rapid.IntRange(4, 16).Draw(t, "digits"), Of: of}
		case 3:
			froms := rapid.SliceOfNDistinct(rapid.String(), 1, 5, rapid.ID).Draw(t, "texts")
			slices.Sort(froms)
			return ranges(t, count, froms, shards.TextKey)
		}
		froms := rapid.SliceOfNDistinct(rapid.Int64(), 1, 5, rapid.ID).Draw(t, "numbers")
		slices.Sort(froms)
		return ranges(t, count, froms, shards.NumberKey)
	})
}

// ranges draws ranges with the given beginnings, some of which end where the next one begins.
func ranges[T any](t *rapid.T, count int, froms []T, key func(T) shards.Key) shards.Strategy {
	s := shards.Strategy{By: shards.ByRange, RefuseIDs: rapid.Bool().Draw(t, "refuse IDs")}
	for i, from := range froms {
		r := shards.KeyRange{From: key(from), Shard: shards.Number(rapid.IntRange(0, count-1).Draw(t, "shard"))}
		if i+1 < len(froms) && rapid.Bool().Draw(t, "to") {
			r.To = key(froms[i+1])
		}
		s.Ranges = append(s.Ranges, r)
	}
	return s
}

// A number and its decimal text are the same key, and a key that has a shard has one of the map.
func TestNumbersAndTheirTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 300).Draw(t, "count")
		c := newConfig(300)
		c.Strategy = arithmetic(count).Draw(t, "strategy")
		m, err := c.Map()
		if err != nil {
			t.Fatal(err)
		}
		number := rapid.Int64().Draw(t, "number")
		text := strconv.FormatInt(number, 10)
		byNumber, err := m.ForKey(number)
		byText, errText := m.ForText(text)
		if byNumber != byText || (err == nil) != (errText == nil) || !m.Has(byNumber) {
			t.Fatalf("%s: shard %d, %v by number %d, and shard %d, %v by text", c.Strategy, byNumber, err, number, byText, errText)
		}
		for _, key := range []shards.Key{shards.NumberKey(number), shards.TextKey(text), shards.TextKey(rapid.String().Draw(t, "text"))} {
			n, err := m.For(key)
			if explained := m.Explain(key); (explained != "") != (err == nil) {
				t.Fatalf("%s: %s is explained as %q, with error %v", c.Strategy, key, explained, err)
			}
			if err != nil && !errors.Is(err, shards.ErrNoShard) && !errors.Is(err, shards.ErrIsID) || err == nil && !m.Has(n) {
				t.Fatalf("%s: %s: shard %d, %v", c.Strategy, key, n, err)
			}
		}
	})
}

func TestTextsThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	numbers := shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.NumberKey(-1 << 63)}}}
	for _, s := range []shards.Strategy{{}, numbers} {
		m := mapOf(t, 16, s)
		for _, text := range []string{"", "-", "alice", "+1", "01", "-0", "-01", "1 ", "1_0", "0x1", "9223372036854775808", "-9223372036854775809", "１"} {
			if n, err := m.ForText(text); !errors.Is(err, shards.ErrNoShard) {
				t.Errorf("%s: %q: got shard %d, %v", s.By, text, n, err)
			}
		}
		for _, text := range []string{"0", "-1", "10", "9223372036854775807", "-9223372036854775808"} {
			if n, err := m.ForText(text); err != nil {
				t.Errorf("%s: %q: got shard %d, %v", s.By, text, n, err)
			}
		}
		if _, err := m.For(shards.Key{}); !errors.Is(err, shards.ErrNoShard) {
			t.Errorf("no key: %v", err)
		}
	}
}

func TestHashSpreads(t *testing.T) {
	t.Parallel()
	for _, s := range []shards.Strategy{byXXHash, byMD5, byHex} {
		m := mapOf(t, 16, s)
		var counts [16]int
		for key := range int64(16_000) {
			n, err := m.ForKey(key)
			if err != nil {
				t.Fatal(err)
			}
			counts[n]++
		}
		if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least < 850 || most > 1150 {
			t.Errorf("%s: 16,000 keys on 16 shards: %v", s.Hash, counts)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	texts := shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.TextKey("a")}, {From: shards.TextKey("m"), Shard: 1}}}
	for _, test := range []struct {
		strategy shards.Strategy
		key      shards.Key
		want     string
	}{
		{shards.Strategy{}, shards.NumberKey(-31341), "-31341 mod 2000 = 659"},
		{shards.Strategy{Of: 1024}, shards.TextKey("31341"), "31341 mod 1024 = 621"},
		{byXXHash, shards.TextKey("a"), `xxhash("a") = 0xd24ec4f1a98c6e5b, mod 2000 = 955`},
		{byMD5, shards.NumberKey(42), `md5("42") = 0xa1d0c6e83f027327d8461063f4ac58a6, mod 2000 = 1174`},
		{byHex, shards.NumberKey(42), `md5("42") = a1d0c6e83f027327d8461063f4ac58a6, its first 8 digits 0xa1d0c6e8, mod 2000 = 184`},
		{texts, shards.TextKey("bob"), `bob is in the range from "a" until "m"`},
		{texts, shards.TextKey("zoe"), `zoe is in the range from "m" on`},
		{shards.Strategy{By: shards.Directory}, shards.NumberKey(1), ""},
	} {
		if got := mapOf(t, 2000, test.strategy).Explain(test.key); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("got %s, expected %s", got, test.want)
		}
	}
}

// Not parallel: AllocsPerRun counts what the whole program allocates.
func TestStrategiesAllocateNothing(t *testing.T) {
	numbers := shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.NumberKey(0)}, {From: shards.NumberKey(50), Shard: 1}}}
	texts := shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.TextKey("")}, {From: shards.TextKey("m"), Shard: 1}}}
	address := strings.Repeat("a", 100) + "@example.org"
	byID := shards.Strategy{By: shards.ByID}
	for _, s := range []shards.Strategy{{}, {RefuseIDs: true}, byXXHash, byMD5, byHex, numbers, texts, byID} {
		m := mapOf(t, 16, s)
		if s.By != "" && s.By != shards.ByID && s.By != shards.ByRange || len(s.Ranges) > 0 && s.Ranges[0].From == shards.TextKey("") {
			if allocs := testing.AllocsPerRun(100, func() { _, _ = m.ForText(address) }); allocs != 0 {
				t.Errorf("%s: a text allocates %v times", s, allocs)
			}
		}
		key := int64(1) << 40
		if allocs := testing.AllocsPerRun(100, func() { key++; _, _ = m.ForKey(key) }); allocs != 0 {
			t.Errorf("%s: a number allocates %v times", s, allocs)
		}
	}
}

func TestStrategyAsJSON(t *testing.T) {
	t.Parallel()
	s := shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.NumberKey(-5), To: shards.NumberKey(0)}, {From: shards.NumberKey(7), Shard: 3}}}
	got, err := json.Marshal(s)
	if want := `{"by":"range","ranges":[{"from":-5,"to":0,"shard":0},{"from":7,"shard":3}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, expected %s", got, err, want)
	}
	got, err = json.Marshal([]shards.Key{shards.TextKey(`a"b`), shards.TextKey("7"), {}})
	if want := `["a\"b","7",null]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, expected %s", got, err, want)
	}
}

func BenchmarkMapForKey(b *testing.B) {
	numbers := shards.Strategy{By: shards.ByRange, Ranges: make([]shards.KeyRange, 1000)}
	for i := range numbers.Ranges {
		numbers.Ranges[i] = shards.KeyRange{From: shards.NumberKey(int64(i) * 1000), Shard: shards.Number(i)}
	}
	for name, s := range map[string]shards.Strategy{"modulo": {}, "xxhash": byXXHash, "md5": byMD5, "hex": byHex, "1000 ranges": numbers} {
		b.Run(name, func(b *testing.B) {
			m := mapOf(b, 2000, s)
			b.ReportAllocs()
			for key := int64(0); b.Loop(); key = (key + 1_000_003) & (1<<19 - 1) {
				if _, err := m.ForKey(key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
