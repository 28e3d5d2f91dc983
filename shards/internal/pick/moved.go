package pick

import "cmp"

// None is the shard of a key in no range.
const None = -1

// Move is a key that two lists of ranges map to different shards.
type Move[T cmp.Ordered] struct {
	Key      T
	From, To int32 // To may be None
}

// Moved returns the first key that has a shard by the ranges from, and another or none by the ranges to. It returns
// false if every key keeps its shard.
func Moved[T cmp.Ordered](from, to []Range[T]) (Move[T], bool) {
	a, b := rangesOf(from), rangesOf(to)
	for i, r := range from {
		end, ends := a.end(i)
		for key := r.From; ; {
			k := b.search(key)
			if k < 0 {
				return Move[T]{key, r.Shard, None}, true
			}
			if to[k].Shard != r.Shard {
				return Move[T]{key, r.Shard, to[k].Shard}, true
			}
			next, ok := b.end(k)
			if !ok || ends && next >= end {
				break
			}
			key = next
		}
	}
	return Move[T]{}, false
}
