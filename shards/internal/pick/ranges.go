package pick

import (
	"cmp"
	"fmt"
	"strconv"
)

// Range maps the keys from From up to To, without To, to a shard. An open one ends where the next range begins, or
// never.
type Range[T cmp.Ordered] struct {
	From, To T
	Open     bool
	Shard    int32
}

// ranges are one or more ranges in rising order. Their bounds are in slices of their own, so that a search reads less
// memory.
type ranges[T cmp.Ordered] struct {
	all    []Range[T]
	starts []T
	ends   []T // the zero T of an open range
}

func rangesOf[T cmp.Ordered](all []Range[T]) ranges[T] {
	s := ranges[T]{all: all}
	for _, r := range all {
		s.starts, s.ends = append(s.starts, r.From), append(s.ends, r.To)
	}
	return s
}

// search returns the index of the range that holds a key, -1 if none does.
func (s ranges[T]) search(key T) int {
	low, high := 0, len(s.starts) // the last range that begins at or before the key is in [low-1, high)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s.starts[middle] <= key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 || s.ends[low-1] <= key && !s.all[low-1].Open {
		return -1
	}
	return low - 1
}

// end returns the first key after range i, and false if the range has no end.
func (s ranges[T]) end(i int) (T, bool) {
	switch {
	case !s.all[i].Open:
		return s.ends[i], true
	case i+1 < len(s.all):
		return s.starts[i+1], true
	}
	return s.ends[i], false
}

// explain says which range holds a key.
func (s ranges[T]) explain(key string, value T) string {
	i := s.search(value)
	text := key + " is in the range from " + written(s.starts[i])
	if end, ok := s.end(i); ok {
		return text + " until " + written(end)
	}
	return text + " on"
}

// written returns a key as kiloshard.yaml has it: a text in quotes.
func written[T cmp.Ordered](key T) string {
	if text, ok := any(key).(string); ok {
		return strconv.Quote(text)
	}
	return fmt.Sprint(key)
}

func inNoRange[T cmp.Ordered](key T) error { return fmt.Errorf("key %s is in no range", written(key)) }

type numberRanges struct{ ranges[int64] }

// Numbers picks the shard of the range that holds a number. The ranges are in rising order and do not overlap.
func Numbers(all []Range[int64]) Picker { return numberRanges{rangesOf(all)} }

func (p numberRanges) ForNumber(key int64) (int32, error) {
	if i := p.search(key); i >= 0 {
		return p.all[i].Shard, nil
	}
	return 0, inNoRange(key)
}

func (p numberRanges) ForText(key string) (int32, error) {
	number, ok := ParseNumber(key)
	if !ok {
		return 0, fmt.Errorf("key %q is not a 64-bit integer, which these ranges need", key)
	}
	return p.ForNumber(number)
}

func (p numberRanges) Explain(key string) string {
	number, _ := ParseNumber(key)
	return p.explain(key, number)
}

type textRanges struct{ ranges[string] }

// Texts picks the shard of the range that holds a text, as [Numbers] does for numbers. Texts are ordered by their
// bytes.
func Texts(all []Range[string]) Picker { return textRanges{rangesOf(all)} }

func (p textRanges) ForNumber(key int64) (int32, error) {
	var buffer [maxDigits]byte
	if i := p.search(string(strconv.AppendInt(buffer[:0], key, 10))); i >= 0 {
		return p.all[i].Shard, nil
	}
	return 0, inNoRange(key)
}

func (p textRanges) ForText(key string) (int32, error) {
	if i := p.search(key); i >= 0 {
		return p.all[i].Shard, nil
	}
	return 0, inNoRange(key)
}

func (p textRanges) Explain(key string) string { return p.explain(key, key) }
