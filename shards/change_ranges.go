package shards

import "slices"

// checkRangesChange checks that b gives every key in a range of a the same shard.
func checkRangesChange(at string, a, b Strategy) error {
	if a.Ranges[0].From.kind != b.Ranges[0].From.kind {
		return changed(at, a.Ranges[0].From.written()+" and on", b.Ranges[0].From.written()+" and on", "numbers and texts have different orders, so keys would be in other shards")
	}
	for i, r := range a.Ranges {
		end := a.endOf(i)
		for key := r.From; ; {
			k := b.rangeOf(key)
			if k < 0 {
				return movesKeys(at, key, r.Shard, "none")
			}
			if b.Ranges[k].Shard != r.Shard {
				return movesKeys(at, key, r.Shard, shardText(b.Ranges[k].Shard))
			}
			next := b.endOf(k)
			if next.IsZero() || !end.IsZero() && next.compare(end) >= 0 {
				break
			}
			key = next
		}
	}
	return nil
}

// movesKeys is the error of a key, the first of many, that would leave its shard.
func movesKeys(at string, key Key, from Number, to string) error {
	err := changed(at, shardText(from)+" for key "+key.written(), to, "the rows of this key and those after it would stay behind")
	err.MovesKeys = true
	return err
}

func shardText(n Number) string { return "shard " + NumberKey(int64(n)).String() }

// endOf returns the first key after range i, or the zero Key if the range has no end.
func (s Strategy) endOf(i int) Key {
	if end := s.Ranges[i].To; !end.IsZero() || i+1 == len(s.Ranges) {
		return end
	}
	return s.Ranges[i+1].From
}

// rangeOf returns the index of the range that holds a key of the ranges' kind, -1 if none does.
func (s Strategy) rangeOf(key Key) int {
	i, found := slices.BinarySearchFunc(s.Ranges, key, func(r KeyRange, key Key) int { return r.From.compare(key) })
	if !found {
		i--
	}
	if i < 0 {
		return -1
	}
	if end := s.endOf(i); !end.IsZero() && key.compare(end) >= 0 {
		return -1
	}
	return i
}
