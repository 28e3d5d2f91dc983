package shards

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// KeyRange maps the keys in [From, To) to one shard. Without To it ends where the next range begins, and the last range
// does not end. Numbers are ordered by value, texts by their bytes in UTF-8.
type KeyRange struct {
	From  Key    `json:"from" yaml:"from"`
	To    Key    `json:"to,omitzero" yaml:"to,omitempty"`
	Shard Number `json:"shard" yaml:"shard,zero,required"`
}

// written returns the range as kiloshard.yaml has it.
func (r KeyRange) written() string {
	to := ""
	if !r.To.IsZero() {
		to = ", to: " + r.To.written()
	}
	return fmt.Sprintf("{from: %s%s, shard: %d}", r.From.written(), to, r.Shard)
}

// Split returns a strategy in which the range that holds at is split there: keys from at to the end of that range go to
// shard. Other ranges, and s itself, do not change. It returns [ErrNoShard] if no range holds at, and a [FieldError]
// if at is the start of a range or of another kind than the ranges, or if s has no ranges.
func (s Strategy) Split(at Key, shard Number) (Strategy, error) {
	if s.By != ByRange || len(s.Ranges) == 0 {
		return Strategy{}, &FieldError{Field: "strategy.by", Found: quoted(s.By), Expected: "range, with ranges to split"}
	}
	if at.kind != s.Ranges[0].From.kind {
		return Strategy{}, &FieldError{Field: "at", Found: at.written(), Expected: "a key of the same kind as " + s.Ranges[0].From.written()}
	}
	i, found := slices.BinarySearchFunc(s.Ranges, at, func(r KeyRange, at Key) int { return r.From.compare(at) })
	if found {
		return Strategy{}, &FieldError{Field: "at", Found: at.written() + ", the start of a range", Expected: "a key inside a range"}
	}
	if i == 0 || !s.Ranges[i-1].To.IsZero() && at.compare(s.Ranges[i-1].To) >= 0 {
		return Strategy{}, noShardFor(at, "is in no range")
	}
	second := KeyRange{From: at, To: s.Ranges[i-1].To, Shard: shard}
	s.Ranges = slices.Insert(slices.Clone(s.Ranges), i, second)
	s.Ranges[i-1].To = Key{}
	return s, nil
}

func pickerOfRanges(all []KeyRange) picker {
	if all[0].From.kind == textKey {
		return textRanges{lookupOf(all, func(k Key) string { return k.text })}
	}
	return numberRanges{lookupOf(all, func(k Key) int64 { return k.number })}
}

// lookup finds ranges by their bounds, which are kept in slices of their own so that a search reads less memory.
type lookup[T cmp.Ordered] struct {
	all    []KeyRange
	starts []T
	ends   []T // the zero T where a range has no To
}

func lookupOf[T cmp.Ordered](all []KeyRange, value func(Key) T) lookup[T] {
	l := lookup[T]{all: all}
	for _, r := range all {
		l.starts, l.ends = append(l.starts, value(r.From)), append(l.ends, value(r.To))
	}
	return l
}

// holder returns the index of the range that holds a key, -1 if none does.
func (l lookup[T]) holder(key T) int {
	low, high := 0, len(l.starts) // the last range that begins at or before the key is in [low-1, high)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if l.starts[middle] <= key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 || l.ends[low-1] <= key && !l.all[low-1].To.IsZero() {
		return -1
	}
	return low - 1
}

// explain says which range holds a key of a shard.
func (l lookup[T]) explain(key Key, i int) string {
	from, end := l.all[i].From, l.all[i].To
	if end.IsZero() && i+1 < len(l.all) {
		end = l.all[i+1].From
	}
	if end.IsZero() {
		return fmt.Sprintf("%s is in the range from %s on", key, from.written())
	}
	return fmt.Sprintf("%s is in the range from %s until %s", key, from.written(), end.written())
}

type numberRanges struct{ lookup[int64] }

func (s numberRanges) forKey(key int64) (Number, error) {
	if i := s.holder(key); i >= 0 {
		return s.all[i].Shard, nil
	}
	return 0, noShardFor(NumberKey(key), "is in no range")
}

func (s numberRanges) forText(key string) (Number, error) {
	number, ok := parseNumber(key)
	if !ok {
		return 0, noShardFor(TextKey(key), "is not a 64-bit integer, which these ranges need")
	}
	return s.forKey(number)
}

func (s numberRanges) explain(key Key) string {
	number := key.number
	if key.kind == textKey {
		number, _ = parseNumber(key.text)
	}
	return s.lookup.explain(key, s.holder(number))
}

type textRanges struct{ lookup[string] }

func (s textRanges) forKey(key int64) (Number, error) {
	var buffer [maxDigits]byte
	if i := s.holder(string(strconv.AppendInt(buffer[:0], key, 10))); i >= 0 {
		return s.all[i].Shard, nil
	}
	return 0, noShardFor(NumberKey(key), "is in no range")
}

func (s textRanges) forText(key string) (Number, error) {
	if i := s.holder(key); i >= 0 {
		return s.all[i].Shard, nil
	}
	return 0, noShardFor(TextKey(key), "is in no range")
}

func (s textRanges) explain(key Key) string { return s.lookup.explain(key, s.holder(key.String())) }
