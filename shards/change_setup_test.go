package shards_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// rangesOf makes the strategy one of ranges of numbers: "0-50>1 50->2" are those from 0 to 50 in shard 1, and from 50 on
// in shard 2.
func rangesOf(text string) func(*shards.Config) {
	s := shards.Strategy{By: shards.ByRange}
	for part := range strings.FieldsSeq(text) {
		bounds, shard, _ := strings.Cut(part, ">")
		from, to, _ := strings.Cut(bounds[1:], "-")
		r := shards.KeyRange{From: numberOf(bounds[:1] + from), Shard: shards.Number(numberIn(shard))}
		if to != "" {
			r.To = numberOf(to)
		}
		s.Ranges = append(s.Ranges, r)
	}
	return strategy(s)
}

// next is rangesOf with ranges that go on.
func next(text string, each int64) func(*shards.Config) {
	return func(c *shards.Config) {
		rangesOf(text)(c)
		c.Strategy.Next = each
	}
}

// texts makes the strategy one of ranges of texts: "a>0 m>1" are those from a to m in shard 0, and from m on in shard 1.
func texts(text string) func(*shards.Config) {
	s := shards.Strategy{By: shards.ByRange}
	for part := range strings.FieldsSeq(text) {
		from, shard, _ := strings.Cut(part, ">")
		s.Ranges = append(s.Ranges, shards.KeyRange{From: shards.TextKey(from), Shard: shards.Number(numberIn(shard))})
	}
	return strategy(s)
}

func numberOf(text string) shards.Key { return shards.NumberKey(int64(numberIn(text))) }

func numberIn(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("bug: %v", err))
	}
	return n
}

func oldIDs(below shards.ID) func(*shards.Config) {
	return func(c *shards.Config) { c.OldIDsBelow = below }
}
