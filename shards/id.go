package shards

import "fmt"

// ID is a 64-bit identifier made by a shard's next_id(). A [Layout] says which bits are which field.
type ID int64

// Number is the number of a shard, from 0 up.
type Number int32

// Parts are the fields of an ID.
type Parts struct {
	Milliseconds int64  // since the epoch; 0 without a time
	Shard        Number // 0-based
	Type         int    // 0-based; 0 without bits of type
	Sequence     int64  // 0-based slot within the millisecond; without a time, the value of a sequence
}

// Compose returns the ID with the given parts. It returns a [FieldError] for a part that does not
// fit in its field.
func (l Layout) Compose(p Parts) (ID, error) {
	fields := []struct {
		name  string
		value int64
		max   int64
	}{
		{"milliseconds", p.Milliseconds, l.MaxMilliseconds()},
		{"shard", int64(p.Shard), int64(l.MaxShards()) - 1},
		{"type", int64(p.Type), int64(l.MaxTypes()) - 1},
		{"sequence", p.Sequence, l.MaxSequence()},
	}
	for _, f := range fields {
		if f.value < 0 || f.value > f.max {
			expected := fmt.Sprintf("0 to %d", f.max)
			if f.max == 0 {
				expected = "0"
			}
			return 0, &FieldError{
				Field:    f.name,
				Found:    fmt.Sprint(f.value),
				Expected: fmt.Sprintf("%s with layout %s", expected, l),
			}
		}
	}
	return ID(p.Milliseconds<<l.low() | int64(p.Shard)<<(l.Type+l.Sequence) | int64(p.Type)<<l.Sequence | p.Sequence), nil
}

// Parts splits an ID into its fields. The milliseconds are all the bits above the shard, even if the layout has
// no time: for an ID that the layout cannot hold they are negative or above
// [Layout.MaxMilliseconds].
func (l Layout) Parts(id ID) Parts {
	return Parts{
		Milliseconds: int64(id) >> l.low(),
		Shard:        Number(int64(id) >> (l.Type + l.Sequence) & (1<<l.Shard - 1)),
		Type:         int(int64(id) >> l.Sequence & (1<<l.Type - 1)),
		Sequence:     int64(id) & l.MaxSequence(),
	}
}
