package shards

import (
	"fmt"
	"strings"
)

const strategyComment = `How a key picks its shard. {by: modulo}: the remainder of a number divided by the number of shards.
{by: hash, hash: xxhash}: that of a hash of any text; or md5, or hex, digits: 8, the first digits of the md5.
{by: range, ranges: [{from: 0, shard: 0}, {from: 1000000, shard: 1}]}: each range ends where the next begins.
{by: directory, otherwise: {by: modulo}, allocate: {by: weighted}}: a table in the shards says where each key is.
{by: id, allocate: {by: weighted}}: a key is an ID that a shard made, and names that shard.
of: 2048 keeps the divisor when more shards are opened. refuse_ids: true refuses keys as large as IDs, so that an
ID used as a key by mistake is an error instead of a row that is not found; keys are then smaller numbers, or texts.

Where the number of a new user comes from: with id, a service asks for any open shard, and the ID of the row that it
inserts there is the user's number and key. With a directory the key may come from the user, such as
an address, and a shard is chosen for it. With the others the number comes before the shard: from a generator (see
generators below) or another system. A shard is chosen by weighted (the hosts' weights), least_used or capacity. A host
with closed: true gets no new users, and capacity: 1000000 is the most that a host gets.`

// strategyField writes the top-level field: each range has a line of its own.
func strategyField(s Strategy) string {
	if s.By != ByRange {
		return "strategy: " + strategyText(s)
	}
	text := "strategy:\n  by: range"
	if s.RefuseIDs {
		text += "\n  refuse_ids: true"
	}
	text += "\n  ranges:"
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
	if s.RefuseIDs {
		fields = append(fields, "refuse_ids: true")
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
