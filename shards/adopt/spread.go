package adopt

import "slices"

// Spread is how large shards would be, if there were so many of them.
type Spread struct {
	ShardCount int   `json:"shard_count"`
	Empty      int   `json:"empty"` // shards without a row
	Smallest   int64 `json:"smallest_bytes"`
	Median     int64 `json:"median_bytes"`
	Largest    int64 `json:"largest_bytes"`
	Rows       int64 `json:"largest_rows"` // of the shard with the most rows
}

// spread finds the sizes of shards, for 256 to 8192 of them. A row counts for its part of its table.
func (p *Plan) spread() {
	bytes, rows := make([]float64, slots), make([]float64, slots)
	for _, t := range p.Tables {
		if !t.Is.Sharded() || t.Looked == 0 {
			continue
		}
		each := float64(t.Bytes) / float64(t.Looked)
		for slot, n := range t.shards {
			bytes[slot] += float64(n) * each
			rows[slot] += float64(n) * 100 / p.Sample
		}
	}
	for count := 256; count <= slots; count *= 2 {
		s := Spread{ShardCount: count}
		sizes := make([]float64, count)
		for shard := range count {
			all := 0.0
			for slot := shard; slot < slots; slot += count {
				sizes[shard] += bytes[slot]
				all += rows[slot]
			}
			if all == 0 {
				s.Empty++
			}
			s.Rows = max(s.Rows, int64(all))
		}
		slices.Sort(sizes)
		s.Smallest, s.Median, s.Largest = int64(sizes[0]), int64(sizes[count/2]), int64(sizes[count-1])
		p.Spreads = append(p.Spreads, s)
	}
}
