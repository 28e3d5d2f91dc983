package pick_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards/internal/pick"
)

// ranges draws ranges in rising order that do not overlap.
func ranges(t *rapid.T, name string) []pick.Range[int64] {
	var all []pick.Range[int64]
	next := int64(0)
	for range rapid.IntRange(1, 4).Draw(t, name) {
		r := pick.Range[int64]{From: next + rapid.Int64Range(0, 2).Draw(t, "from"), Shard: rapid.Int32Range(0, 1).Draw(t, "shard")}
		next = r.From + rapid.Int64Range(1, 3).Draw(t, "length")
		if r.Open = rapid.Bool().Draw(t, "open"); !r.Open {
			r.To = next
		}
		all = append(all, r)
	}
	return all
}

func TestMovedIsTheFirstKeyOfAnotherShard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := ranges(t, "from"), ranges(t, "to")
		a, b := pick.Numbers(from), pick.Numbers(to)
		got, moved := pick.Moved(from, to)
		for key := range int64(30) { // above all bounds
			shard, err := a.ForNumber(key)
			if err != nil {
				continue
			}
			other, err := b.ForNumber(key)
			if err != nil {
				other = pick.None
			}
			if other == shard {
				continue
			}
			if want := (pick.Move[int64]{Key: key, From: shard, To: other}); !moved || got != want {
				t.Fatalf("got %+v, %t; expected %+v", got, moved, want)
			}
			return
		}
		if moved {
			t.Fatalf("got %+v; expected that no key moves", got)
		}
	})
}

func TestParseNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "42": 42, "-7": -7, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63} {
		if got, ok := pick.ParseNumber(text); !ok || got != want {
			t.Errorf("%q: got %d, %t; expected %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "-0", " 1", "1.0", "0x1", "9223372036854775808"} {
		if got, ok := pick.ParseNumber(text); ok {
			t.Errorf("%q: got %d; expected no number", text, got)
		}
	}
}
