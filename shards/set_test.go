package shards_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestParseSet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		text  string
		found string // in the error; empty for none
		set   string
	}{
		{"empty", "", "", ""},
		{"blank", " \t", "", ""},
		{"one", "7", "", "7"},
		{"a range", "0-9", "", "0-9"},
		{"both", "0-9,77", "", "0-9,77"},
		{"spaces", " 0 - 9 , 77 ", "", "0-9,77"},
		{"a range of one", "5-5", "", "5"},
		{"out of order", "77,3,0-1", "", "0-1,3,77"},
		{"overlapping and touching", "0-5,3-8,9,20", "", "0-9,20"},
		{"leading zeros, as in a schema's name", "00042", "", "42"},
		{"last of any layout", "65535", "", "65535"},
		{"past any layout", "65536", `"65536"`, ""},
		{"far past", "0-2147483647", `"0-2147483647"`, ""},
		{"past 64 bits", "99999999999999999999", `"99999999999999999999"`, ""},
		{"backward", "9-0", `"9-0", which ends before it starts`, ""},
		{"negative", "-1", `"-1"`, ""},
		{"signed", "+1", `"+1"`, ""},
		{"open to the right", "1-", `"1-"`, ""},
		{"two dashes", "1-2-3", `"1-2-3"`, ""},
		{"no number", "0-9,pg-a", `"pg-a"`, ""},
		{"nothing between commas", "1,,2", "an empty part", ""},
		{"comma at the end", "1,", "an empty part", ""},
		{"dots", "1..9", `"1..9"`, ""},
		{"hexadecimal", "0x10", `"0x10"`, ""},
		{"underscore", "1_000", `"1_000"`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			set, err := shards.ParseSet(test.text)
			var e *shards.FieldError
			switch {
			case test.found == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case test.found != "" && (!errors.As(err, &e) || e.Found != test.found):
				t.Fatalf("got %v, expected an error that names %s", err, test.found)
			case set.String() != test.set:
				t.Fatalf("got %q, expected %q", set, test.set)
			}
		})
	}
}

func TestSetAtTheEdges(t *testing.T) {
	t.Parallel()
	last := shards.Number(math.MaxInt32)
	tests := []struct {
		name string
		set  shards.Set
		text string
		len  int
	}{
		{"zero", shards.Set{}, "", 0},
		{"negative numbers", shards.SetOf(-1, -5), "", 0},
		{"a range that begins below 0", shards.SetOfRanges(shards.Range{First: -5, Last: 1}), "0-1", 2},
		{"a backward range", shards.SetOfRanges(shards.Range{First: 5, Last: 4}), "", 0},
		{"the last number", shards.SetOf(last), "2147483647", 1},
		{"all numbers, and some of them again", shards.SetOfRanges(shards.Range{First: 0, Last: last}, shards.Range{First: 5, Last: 7}), "0-2147483647", 1 << 31},
		{"touching at the end", shards.SetOf(last-1, last), "2147483646-2147483647", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.set.String() != test.text || test.set.Len() != test.len {
				t.Fatalf("got %q of %d, expected %q of %d", test.set, test.set.Len(), test.text, test.len)
			}
		})
	}
	if got := slices.Collect(shards.SetOf(last-1, last).All()); !slices.Equal(got, []shards.Number{last - 1, last}) {
		t.Errorf("All at the end: got %v", got)
	}
}

// numbers draws a few numbers close enough to each other to touch often.
func numbers() *rapid.Generator[[]shards.Number] {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 60), func(n int) shards.Number { return shards.Number(n) }), 0, 40)
}

func TestSetAgainstMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := numbers().Draw(t, "numbers")
		model := map[shards.Number]bool{}
		for _, n := range drawn {
			model[n] = true
		}
		set := shards.SetOf(drawn...)
		if set.Len() != len(model) {
			t.Fatalf("%q has %d shards, expected %d", set, set.Len(), len(model))
		}
		for n := shards.Number(-2); n < 65; n++ {
			if set.Has(n) != model[n] {
				t.Fatalf("%q has %d: %v, expected %v", set, n, set.Has(n), model[n])
			}
		}
		if got, want := slices.Collect(set.All()), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
			t.Fatalf("%q yields %v, expected %v", set, got, want)
		}
		for i, r := range set.Ranges() {
			if r.Last < r.First || i > 0 && r.First <= set.Ranges()[i-1].Last+1 {
				t.Fatalf("ranges are not sorted, disjoint and as few as can be: %v", set.Ranges())
			}
		}
		if again := shards.SetOfRanges(set.Ranges()...); again.String() != set.String() {
			t.Fatalf("%q became %q through its ranges", set, again)
		}
	})
}

func TestSetTextRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := shards.SetOf(numbers().Draw(t, "numbers")...)
		text, err := set.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back shards.Set
		if err := back.UnmarshalText(text); err != nil || back.String() != set.String() {
			t.Fatalf("%q became %q, %v", text, back, err)
		}
	})
}

func TestSetUnmarshalKeepsAfterError(t *testing.T) {
	t.Parallel()
	set := shards.SetOf(1)
	if err := set.UnmarshalText([]byte("x")); err == nil || set.String() != "1" {
		t.Fatalf("got %q, %v, expected the old set and an error", set, err)
	}
}

// A set is never longer than it may be, and each shard is named or counted.
func TestShortSet(t *testing.T) {
	t.Parallel()
	var odd []shards.Number
	for n := shards.Number(1); n < 4096; n += 2 {
		odd = append(odd, n)
	}
	sets := []shards.Set{{}, shards.SetOf(7), shards.SetOf(odd...), shards.SetOfRanges(shards.Range{First: 0, Last: 1023}, shards.Range{First: 2000, Last: 65535}), shards.SetOf(65533, 65535)}
	for _, set := range sets {
		for limit := 24; limit < 300; limit++ {
			got := set.Short(limit)
			shown, rest, cut := strings.Cut(got, " and ")
			if !cut && strings.HasSuffix(got, " shards") {
				shown, rest, cut = "", strings.Replace(got, " shards", " more", 1), true
			}
			named, err := shards.ParseSet(shown)
			left := 0
			if cut {
				_, _ = fmt.Sscanf(strings.ReplaceAll(rest, ",", ""), "%d more", &left)
			}
			if len(got) > limit || err != nil || named.Len()+left != set.Len() {
				t.Fatalf("in %d bytes: got %q, %v", limit, got, err)
			}
		}
	}
	if got := sets[2].Short(24); got != "1,3,5,7,9 and 2,043 more" {
		t.Errorf("got %q", got)
	}
}

func TestSetAllStops(t *testing.T) {
	t.Parallel()
	seen := 0
	for range shards.SetOfRanges(shards.Range{First: 0, Last: 5}, shards.Range{First: 10, Last: 15}).All() {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Fatalf("went on to %d", seen)
	}
}

func TestParseSetNeverShowsADSN(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"postgres://app:hunter2@10.0.0.1/app", "password=hunter2", "app:hunter2@pg"} {
		_, err := shards.ParseSet(text)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
			t.Errorf("got %v, expected an error without the password", err)
		}
	}
}
