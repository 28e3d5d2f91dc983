package shards

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Range is the shards from First to Last, both included. It is empty if Last is below First.
type Range struct{ First, Last Number }

// Set is a set of shard numbers, written as ranges: "0-9,77". The zero Set is empty.
//
// A Set keeps its ranges sorted, disjoint and as few as possible, so that equal sets print alike.
type Set struct{ ranges []Range }

// SetOf returns the set of the given numbers, which may be unsorted and repeat. It ignores negative numbers.
func SetOf(numbers ...Number) Set {
	ranges := make([]Range, len(numbers))
	for i, n := range numbers {
		ranges[i] = Range{n, n}
	}
	return SetOfRanges(ranges...)
}

// SetOfRanges returns the set of all numbers in the given ranges, which may overlap. It ignores negative numbers.
func SetOfRanges(ranges ...Range) Set {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b Range) int { return int(a.First) - int(b.First) })
	var merged []Range
	for _, r := range sorted {
		r.First = max(r.First, 0)
		if r.Last < r.First {
			continue
		}
		if last := len(merged) - 1; last >= 0 && r.First-1 <= merged[last].Last {
			merged[last].Last = max(merged[last].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return Set{ranges: merged}
}

// maxNumber is the highest shard number of the widest layout.
const maxNumber = 1<<maxShardBits - 1

// ParseSet parses numbers and ranges separated by commas: "0-9,77". Numbers are 0 to 65535, the range of the widest
// layout. The empty text is the empty set. The error is a [FieldError] that names the part it cannot parse.
func ParseSet(text string) (Set, error) {
	if strings.TrimSpace(text) == "" {
		return Set{}, nil
	}
	var ranges []Range
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.ParseUint(strings.TrimSpace(first), 10, 31)
		to, errTo := strconv.ParseUint(strings.TrimSpace(last), 10, 31)
		switch {
		case part == "":
			return Set{}, &FieldError{Found: "an empty part", Expected: "shards and ranges of shards, such as 7 or 0-9, with commas between them"}
		case errFrom != nil || errTo != nil:
			return Set{}, &FieldError{Found: quoted(part), Expected: "a shard or a range of shards, such as 7 or 0-9"}
		case max(from, to) > maxNumber:
			return Set{}, &FieldError{Found: quoted(part), Expected: fmt.Sprintf("shards from 0 to %d", maxNumber)}
		case to < from:
			return Set{}, &FieldError{Found: quoted(part) + ", which ends before it starts", Expected: "a range of shards, such as 0-9"}
		}
		ranges = append(ranges, Range{Number(from), Number(to)})
	}
	return SetOfRanges(ranges...), nil
}

// Len returns how many shards are in the set.
func (s Set) Len() int {
	n := 0
	for _, r := range s.ranges {
		n += int(r.Last) - int(r.First) + 1
	}
	return n
}

// Has reports whether the set holds n.
func (s Set) Has(n Number) bool {
	i, found := slices.BinarySearchFunc(s.ranges, n, func(r Range, n Number) int { return int(r.First) - int(n) })
	return found || i > 0 && n <= s.ranges[i-1].Last
}

// All yields the numbers of the set in rising order.
func (s Set) All() iter.Seq[Number] {
	return func(yield func(Number) bool) {
		for _, r := range s.ranges {
			for n := int64(r.First); n <= int64(r.Last); n++ {
				if !yield(Number(n)) {
					return
				}
			}
		}
	}
}

// Ranges returns the set as its fewest ranges, in rising order.
func (s Set) Ranges() []Range { return slices.Clone(s.ranges) }

// Union returns the set of the shards that are in either set.
func (s Set) Union(other Set) Set { return SetOfRanges(append(s.Ranges(), other.ranges...)...) }

// String returns the set as [ParseSet] reads it.
func (s Set) String() string {
	var b strings.Builder
	for i, r := range s.ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", r.First)
		if r.Last > r.First {
			fmt.Fprintf(&b, "-%d", r.Last)
		}
	}
	return b.String()
}

// Short returns the set in at most limit bytes: what [Set.String] returns if that fits, else the first ranges that do
// and how many shards are left out, as in "0-9,77 and 1,022 more". The limit is at least 24.
func (s Set) Short(limit int) string {
	text := s.String()
	if len(text) <= limit {
		return text
	}
	left := s.Len()
	shown := ""
	for _, r := range s.ranges {
		next := strings.TrimPrefix(shown+","+SetOfRanges(r).String(), ",")
		rest := left - int(r.Last-r.First) - 1
		if len(next)+len(more(rest)) > limit {
			break
		}
		shown, left = next, rest
	}
	if shown == "" {
		return strings.TrimSuffix(strings.TrimPrefix(more(left), " and "), " more") + " shards"
	}
	return shown + more(left)
}

// more is the end of a set that is written in part.
func more(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return " and " + digits + " more"
}

// MarshalText returns what [Set.String] does.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the shards as a list of numbers.
func (s Set) MarshalJSON() ([]byte, error) {
	numbers := make([]Number, 0, s.Len())
	for n := range s.All() {
		numbers = append(numbers, n)
	}
	return json.Marshal(numbers)
}

// UnmarshalJSON parses a list of numbers, or a text as [ParseSet] does. After an error the set is unchanged.
func (s *Set) UnmarshalJSON(text []byte) error {
	var numbers []Number
	if err := json.Unmarshal(text, &numbers); err == nil {
		*s = SetOf(numbers...)
		return nil
	}
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return &FieldError{Found: string(text), Expected: "a list of shards, such as [0,1,7]"}
	}
	return s.UnmarshalText([]byte(written))
}

// UnmarshalText parses text as [ParseSet] does. After an error the set is unchanged.
func (s *Set) UnmarshalText(text []byte) error {
	set, err := ParseSet(string(text))
	if err == nil {
		*s = set
	}
	return err
}
