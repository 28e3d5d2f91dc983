package shards_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// Each test puts a strategy into document, from line 6 on.
func TestCheckStrategy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, strategy, err string
	}{
		{"no such strategy", `{by: consistent}`, `6: strategy.by: "consistent"; expected modulo, hash, range, directory or id`},
		{"no such hash", `{by: hash, hash: crc32}`, `6: strategy.hash: "crc32"; expected xxhash, md5 or hex`},
		{"of more than there are", `{by: modulo, of: 2049}`, `6: strategy.of: 2049; expected 1 to 2048, since shards is 2048`},
		{"of nothing", `{by: modulo, of: 0}`, `6: strategy.of: 0; expected a whole number, 1 or more`},
		{"too few digits", `{by: hash, hash: hex, digits: 2}`, `6: strategy.digits: 2; expected 3 to 16, to reach each of 2048 shards`},
		{"too many digits", `{by: hash, hash: hex, digits: 17}`, `6: strategy.digits: 17; expected 3 to 16`},
		{"digits of md5", `{by: hash, hash: md5, digits: 8}`, `6: strategy.digits: 8; expected none: only hex has digits`},
		{"hash of modulo", `{by: modulo, hash: md5}`, `6: strategy.hash: a field that modulo does not have; expected none`},
		{"a field that is unknown", `{by: modulo, off: 7}`, `6: strategy: unknown field "off"; expected one of by, of, `},
		{"no ranges", `{by: range}`, `6: strategy.ranges: none; expected ranges such as`},
		{"ranges that are no list", `{by: range, ranges: 7}`, `6: strategy.ranges: a number; expected a list of ranges`},
		{"a range without a beginning", "\n  by: range\n  ranges:\n    - {shard: 0}", `9: strategy.ranges[0].from: missing; expected the first key`},
		{"a range without a shard", "\n  by: range\n  ranges:\n    - {from: 0}", `9: strategy.ranges[0].shard: missing; expected the shard of the range`},
		{"a broken number", "\n  by: range\n  ranges:\n    - {from: 1.5, shard: 0}", `9: strategy.ranges[0].from: a number; expected a whole number of 64 bits`},
		{"a number too large", "\n  by: range\n  ranges:\n    - {from: 9223372036854775808, shard: 0}", `9: strategy.ranges[0].from: 9223372036854775808; expected a whole number of 64 bits`},
		{"not sorted", "\n  by: range\n  ranges:\n    - {from: 10, shard: 0}\n    - {from: 9, shard: 1}", `10: strategy.ranges[1].from: 9 after 10; expected ranges in rising order`},
		{"the same twice", "\n  by: range\n  ranges:\n    - {from: 10, shard: 0}\n    - {from: 10, shard: 1}", `10: strategy.ranges[1].from: 10 after 10; expected ranges in rising order`},
		{"numbers and texts", "\n  by: range\n  ranges:\n    - {from: 0, shard: 0}\n    - {from: m, shard: 1}", `10: strategy.ranges[1].from: "m"; expected a key of the same kind as 0`},
		{"an end of another kind", "\n  by: range\n  ranges:\n    - {from: 0, to: m, shard: 0}", `9: strategy.ranges[0].to: "m"; expected a key of the same kind as 0`},
		{"an end before the beginning", "\n  by: range\n  ranges:\n    - {from: 5, to: 5, shard: 0}", `9: strategy.ranges[0].to: 5; expected a key above 5`},
		{"overlap", "\n  by: range\n  ranges:\n    - {from: 0, to: 11, shard: 0}\n    - {from: 10, shard: 1}", `9: strategy.ranges[0].to: 11, which overlaps the range from 10; expected each key in one range`},
		{"unknown shard", "\n  by: range\n  ranges:\n    - {from: 0, shard: 2048}", `9: strategy.ranges[0].shard: 2048; expected 0 to 2047, since shards is 2048`},
		{"ranges that go on backwards", "\n  by: range\n  ranges:\n    - {from: 0, shard: 0}\n  next: -5", `10: strategy.next: -5; expected a whole number, 1 or more`},
		{"texts that go on", "\n  by: range\n  ranges:\n    - {from: m, shard: 0}\n  next: 5", `10: strategy.next: 5; expected none: only ranges of numbers go on`},
		{"an end of ranges that go on", "\n  by: range\n  ranges:\n    - {from: 0, to: 7, shard: 0}\n  next: 5", `9: strategy.ranges[0].to: 7; expected none in the last range`},
		{"modulo that goes on", `{by: modulo, next: 5}`, `6: strategy.next: a field that modulo does not have; expected none`},
		{"no such allocation", `{by: directory, allocate: {by: random}}`, `6: strategy.allocate.by: "random"; expected weighted, least_used or capacity`},
		{"by capacity without one", `{by: directory, allocate: {by: capacity}}`, `9: hosts[0].capacity: missing; expected the most keys on this host`},
		{"a directory in a directory", `{by: directory, otherwise: {by: directory}}`, `6: strategy.otherwise.by: "directory"; expected modulo, hash, range or id`},
		{"IDs refused and taken", `{by: id, refuse_ids: true}`, `6: strategy.refuse_ids: a field that id does not have; expected none`},
		{"IDs refused by a directory", `{by: directory, refuse_ids: true}`, `6: strategy.refuse_ids: a field that directory does not have; expected none`},
		{"a divisor of IDs", `{by: id, of: 16}`, `6: strategy.of: a field that id does not have; expected none`},
		{"IDs by capacity without one", `{by: id, allocate: {by: capacity}}`, `9: hosts[0].capacity: missing; expected the most keys on this host`},
		{"allocation of a directory's rest", `{by: directory, otherwise: {by: id, allocate: {by: weighted}}}`, `6: strategy.otherwise: unknown field "allocate"`},
		{"a wrong way otherwise", `{by: directory, otherwise: {by: hash, hash: crc32}}`, `6: strategy.otherwise.hash: "crc32"; expected xxhash`},
		{"allocation of modulo", `{by: modulo, allocate: {by: weighted}}`, `6: strategy.allocate: a field that modulo does not have; expected none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(document, "{by: modulo}", test.strategy, 1)
			if err := refused(t, text); !strings.HasPrefix(err.Error(), "kiloshard.yaml:"+test.err) {
				t.Fatalf("got      %v\nexpected kiloshard.yaml:%s", err, test.err)
			}
		})
	}
	text := strings.Replace(document, "weight: 1", "closed: perhaps", 1)
	if err := refused(t, text); !strings.HasPrefix(err.Error(), "kiloshard.yaml:9: hosts[0].closed: text; expected true or false") {
		t.Errorf("got %v", err)
	}
}

// A strategy made in Go that YAML cannot hold is refused too.
func TestCheckStrategyOfGo(t *testing.T) {
	t.Parallel()
	for _, s := range []shards.Strategy{
		{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.TextKey("\xff")}}},
		{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.TextKey("a"), To: shards.TextKey("b\xff")}}},
		{By: shards.ByRange, Ranges: []shards.KeyRange{{From: shards.NumberKey(0), Shard: -1}}},
		{By: shards.Modulo, Of: -1},
		{By: shards.Directory, Allocate: shards.Allocation{Capacity: -1}},
	} {
		c := newConfig(8)
		c.Strategy = s
		var e *shards.FieldError
		if _, err := c.Map(); !errors.As(err, &e) || !strings.HasPrefix(e.Field, "strategy.") {
			t.Errorf("%s: got %v", s, err)
		}
	}
}

// A strategy that was written by hand is the same after it was read and written.
func TestStrategyAsYAML(t *testing.T) {
	t.Parallel()
	otherwise := shards.Strategy{By: shards.Modulo, Of: 1024}
	for _, test := range []struct {
		text    string
		want    shards.Strategy
		written string
	}{
		{"{}", shards.Strategy{By: shards.Modulo}, "strategy: {by: modulo}\n"},
		{"{by: hash}", shards.Strategy{By: shards.Hash, Hash: shards.XXHash}, "strategy: {by: hash, hash: xxhash}\n"},
		{"{by: hash, hash: hex}", shards.Strategy{By: shards.Hash, Hash: shards.Hex, Digits: 8}, "strategy: {by: hash, hash: hex, digits: 8}\n"},
		{
			`{by: range, ranges: [{from: "", shard: 0}, {from: m, to: "z", shard: 1}]}`,
			shards.Strategy{By: shards.ByRange, Ranges: []shards.KeyRange{
				{From: shards.TextKey("")}, {From: shards.TextKey("m"), To: shards.TextKey("z"), Shard: 1},
			}},
			"strategy:\n  by: range\n  ranges:\n    - {from: \"\", shard: 0}\n    - {from: \"m\", to: \"z\", shard: 1}\n",
		},
		{
			"{by: directory, otherwise: {by: modulo, of: 1024}, allocate: {by: least_used, capacity: 500}}",
			shards.Strategy{By: shards.Directory, Otherwise: &otherwise, Allocate: shards.Allocation{By: shards.LeastUsed, Capacity: 500}},
			"strategy: {by: directory, otherwise: {by: modulo, of: 1024}, allocate: {by: least_used, capacity: 500}}\n",
		},
		{
			"{by: directory, of: 256}",
			shards.Strategy{By: shards.Directory, Of: 256, Allocate: shards.Allocation{By: shards.Weighted}},
			"strategy: {by: directory, of: 256, allocate: {by: weighted}}\n",
		},
	} {
		c := parse(t, strings.Replace(document, "{by: modulo}", test.text, 1))
		if !reflect.DeepEqual(c.Strategy, test.want) {
			t.Errorf("%s: got %s, expected %s", test.text, c.Strategy, test.want)
		}
		if text, err := c.YAML(); err != nil || !strings.Contains(string(text), test.written) {
			t.Errorf("%v: no %s in\n%s", err, test.written, text)
		}
	}
	c := parse(t, strings.Replace(document, "weight: 1", "weight: 2, closed: true, capacity: 1000", 1))
	if h := c.Hosts[0]; !h.Closed || h.Capacity != 1000 || c.Hosts[1].Closed {
		t.Errorf("closed %t, capacity %d", h.Closed, h.Capacity)
	}
	if text, err := c.YAML(); err != nil || !strings.Contains(string(text), "weight: 2, closed: true, capacity: 1000}") {
		t.Errorf("%v:\n%s", err, text)
	}
}
