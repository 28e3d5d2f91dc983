package shards_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// byName are ranges of texts with a hole.
var byName = shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{
	{From: shards.TextKey("a"), To: shards.TextKey("f"), Shard: 3},
	{From: shards.TextKey("m"), Shard: 1},
	{From: shards.TextKey("müller"), Shard: 2},
}}

// byNumber are ranges of numbers with a hole and an end.
var byNumber = shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{
	{From: shards.NumberKey(0), Shard: 4},
	{From: shards.NumberKey(1_000_000), To: shards.NumberKey(2_000_000), Shard: 0},
	{From: shards.NumberKey(3_000_000), To: shards.NumberKey(math.MaxInt64), Shard: 7},
}}

func TestRanges(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, test := range []struct {
		strategy shards.Strategy
		key      shards.Key
		shard    shards.Number
	}{
		{byNumber, shards.NumberKey(math.MinInt64), none},
		{byNumber, shards.NumberKey(-1), none},
		{byNumber, shards.NumberKey(0), 4},
		{byNumber, shards.NumberKey(999_999), 4},
		{byNumber, shards.NumberKey(1_000_000), 0},
		{byNumber, shards.NumberKey(1_999_999), 0},
		{byNumber, shards.NumberKey(2_000_000), none},
		{byNumber, shards.NumberKey(3_000_000), 7},
		{byNumber, shards.NumberKey(math.MaxInt64 - 1), 7},
		{byNumber, shards.NumberKey(math.MaxInt64), none},
		{byNumber, shards.TextKey("999999"), 4},
		{byName, shards.TextKey(""), none},
		{byName, shards.TextKey("Zoe"), none}, // capitals come before small letters
		{byName, shards.TextKey("a"), 3},
		{byName, shards.TextKey("eve"), 3},
		{byName, shards.TextKey("f"), none},
		{byName, shards.TextKey("m"), 1},
		{byName, shards.TextKey("mz"), 1}, // ü is after z
		{byName, shards.TextKey("müller"), 2},
		{byName, shards.TextKey("\xff"), 2},
		{byName, shards.NumberKey(7), none},
	} {
		n, err := mapOf(t, 8, test.strategy).For(test.key)
		if test.shard == none && !errors.Is(err, shards.ErrNoShard) || test.shard != none && (err != nil || n != test.shard) {
			t.Errorf("%s: got shard %d, %v, expected %d", test.key, n, err, test.shard)
		}
	}
}

// The ranges after the last one are as long as it, each in the next shard, up to the last shard.
func TestNextRanges(t *testing.T) {
	t.Parallel()
	goesOn := shards.Strategy{By: shards.ByRange, Next: 1000, Ranges: []shards.KeyRange{
		{From: shards.NumberKey(0), Shard: 5}, {From: shards.NumberKey(300), Shard: 1},
	}}
	wide := shards.Strategy{By: shards.ByRange, Next: math.MaxInt64, Ranges: []shards.KeyRange{{From: shards.NumberKey(-7), Shard: 2}}}
	const none = -1
	for _, test := range []struct {
		strategy shards.Strategy
		key      shards.Key
		count    int
		shard    shards.Number
	}{
		{goesOn, shards.NumberKey(-1), 8, none},
		{goesOn, shards.NumberKey(299), 8, 5},
		{goesOn, shards.NumberKey(300), 8, 1},
		{goesOn, shards.NumberKey(1299), 8, 1},
		{goesOn, shards.NumberKey(1300), 8, 2},
		{goesOn, shards.TextKey("6300"), 8, 7},
		{goesOn, shards.NumberKey(7299), 8, 7},
		{goesOn, shards.NumberKey(7300), 8, none},
		{goesOn, shards.TextKey("7300"), 8, none},
		{goesOn, shards.TextKey("x"), 8, none},
		{goesOn, shards.NumberKey(7300), 9, 8},
		{wide, shards.NumberKey(math.MaxInt64 - 8), 8, 2},
		{wide, shards.NumberKey(math.MaxInt64), 8, 3},
	} {
		n, err := mapOf(t, test.count, test.strategy).For(test.key)
		if test.shard == none && !errors.Is(err, shards.ErrNoShard) || test.shard != none && (err != nil || n != test.shard) {
			t.Errorf("%s of %d shards: got shard %d, %v, expected %d", test.key, test.count, n, err, test.shard)
		}
	}
	m := mapOf(t, 8, goesOn)
	if _, err := m.ForKey(7300); err == nil || !strings.Contains(err.Error(), "key 7300 is after the range of the last shard, which ends at 7300; kiloshard open adds shards") {
		t.Errorf("got %v", err)
	}
	if got, want := m.Explain(shards.NumberKey(2000)), "2000 is in the range from 1300 until 2300"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	again, err := shards.Parse("kiloshard.yaml", shards.Template(m.Config()), nil)
	if err != nil || again.Strategy.String() != goesOn.String() || !strings.Contains(goesOn.String(), "next: 1000") {
		t.Errorf("read again: %v, %v, expected %v", again.Strategy, err, goesOn)
	}
	if err := shards.CheckKeys(goesOn.String(), strings.Replace(goesOn.String(), "shard: 1", "shard: 70000", 1)); err == nil {
		t.Error("a host's text with a shard that no layout has was taken for the same keys")
	}
}
