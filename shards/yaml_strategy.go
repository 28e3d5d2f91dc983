package shards

import (
	"fmt"
	"strings"
)

const strategyComment = `How a key picks its shard. {by: modulo}: the remainder of a number divided by the number of shards.
{by: hash, hash: xxhash}: that of a hash of any text; or md5, or hex, digits: 8, the first digits of the md5.
{by: range, ranges: [{from: 0, shard: 0}, {from: 1000000, shard: 1}]}: each range up to where the next begins.
{by: directory, otherwise: {by: modulo}, allocate: {by: weighted}}: a table in the shards says where each key is;
new keys are put by weighted (the hosts' weights), least_used or capacity. A host with closed: true gets none,
and capacity: 1000000 is the most that a host gets. of: 2048 keeps the divisor when more shards are opened.`

// strategyField writes the field of the outermost level: ranges have a line each.
func strategyField(s Strategy) string {
	if s.By != ByRange {
		return "strategy: " + strategyText(s)
	}
	text := "strategy:\n  by: range\n  ranges:"
	for _, r := range s.Ranges {
		text += "\n    - " + rangeText(r)
	}
	return text
}

// strategyText writes a strategy on one line.
func strategyText(s Strategy) string {
	fields := []string{"by: " + plain(s.By)}
	if s.Hash != "" {
		fields = append(fields, "hash: "+plain(s.Hash))
	}
	if s.Digits != 0 {
		fields = append(fields, fmt.Sprintf("digits: %d", s.Digits))
	}
	if s.Of != 0 {
		fields = append(fields, fmt.Sprintf("of: %d", s.Of))
	}
	if len(s.Ranges) > 0 {
		ranges := make([]string, len(s.Ranges))
		for i, r := range s.Ranges {
			ranges[i] = rangeText(r)
		}
		fields = append(fields, "ranges: ["+strings.Join(ranges, ", ")+"]")
	}
	if s.Otherwise != nil {
		fields = append(fields, "otherwise: "+strategyText(*s.Otherwise))
	}
	if s.Allocate != (Allocation{}) {
		allocate := "by: " + plain(s.Allocate.By)
		if s.Allocate.Capacity != 0 {
			allocate += fmt.Sprintf(", capacity: %d", s.Allocate.Capacity)
		}
		fields = append(fields, "allocate: {"+allocate+"}")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func rangeText(r KeyRange) string {
	to := ""
	if !r.To.IsZero() {
		to = ", to: " + r.To.written()
	}
	return fmt.Sprintf("{from: %s%s, shard: %d}", r.From.written(), to, r.Shard)
}
