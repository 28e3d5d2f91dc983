package shards

import (
	"fmt"
	"strings"
)

// maxTimeBits limits the end of a layout to 4,459 years after its epoch, a date that Postgres and Go can write.
const maxTimeBits = 47

// maxShardBits keeps every shard number within the five digits of a schema's name.
const maxShardBits = 16

// maxTypeBits is more types than a cluster has tables.
const maxTypeBits = 16

// The limits of a sequence's width: within a millisecond, and in a layout without a time. In the latter its values are
// those of a Postgres sequence, which must have at least two of them from 1 up.
const (
	minSequenceBits, maxSequenceBits                 = 1, 22
	minSequenceBitsTimeless, maxSequenceBitsTimeless = 2, 48
)

// Layout says how the 64 bits of an ID are split, in bits. The fields have this order, the time highest. A layout may
// leave out the time, the type, or both; it must have a shard and a sequence.
//
// With a time the widths may add up to 64, as Instagram's do. The sign bit stays clear even then, so the time has one bit
// less than its width says; see [Layout.TimeBits]. Without a time they add up to 63 at most.
type Layout struct {
	Time     int `json:"time" yaml:"time,zero,required"`            // milliseconds since the epoch; 0 for IDs without a time
	Shard    int `json:"shard" yaml:"shard,zero,required"`          // the shard's number
	Type     int `json:"type,omitempty" yaml:"type,zero,omitempty"` // the kind of object, such as a table; 0 for IDs without a type
	Sequence int `json:"sequence" yaml:"sequence,zero,required"`    // the slot within the millisecond; without a time, the value of a sequence
}

// DefaultLayout is the one that Instagram published: 41 bits of time, 13 of shard, 10 of sequence.
var DefaultLayout = Layout{Time: 41, Shard: 13, Sequence: 10}

// Validate returns a [FieldError] for a layout that cannot hold IDs.
func (l Layout) Validate() error {
	least, most, sum := minSequenceBits, maxSequenceBits, 64
	if !l.HasTime() {
		least, most, sum = minSequenceBitsTimeless, maxSequenceBitsTimeless, 63
	}
	fields := []struct {
		name     string
		bits     int
		min, max int
		expected string // defaults to min to max bits
	}{
		{"time", l.Time, 0, maxTimeBits, fmt.Sprintf("1 to %d bits, or 0 for IDs without a time", maxTimeBits)},
		{"shard", l.Shard, 1, maxShardBits, ""},
		{"type", l.Type, 0, maxTypeBits, fmt.Sprintf("1 to %d bits, or 0 for IDs without a type", maxTypeBits)},
		{"sequence", l.Sequence, least, most, ""},
	}
	for _, f := range fields {
		if f.bits < f.min || f.bits > f.max {
			if f.expected == "" {
				f.expected = fmt.Sprintf("%d to %d bits", f.min, f.max)
			}
			if f.name == "sequence" && !l.HasTime() {
				f.expected += " without a time"
			}
			return &FieldError{Field: "layout." + f.name, Found: fmt.Sprintf("%d bits", f.bits), Expected: f.expected}
		}
	}
	if bits := l.Time + l.Shard + l.Type + l.Sequence; bits > sum {
		expected := fmt.Sprintf("at most %d bits in all", sum)
		if !l.HasTime() {
			expected += " without a time"
		}
		return &FieldError{Field: "layout", Found: fmt.Sprintf("%s, which is %d bits", l, bits), Expected: expected}
	}
	return nil
}

// String returns the widths in bits: of a layout of time, shard and sequence such as "41|13|10", of any other with the
// names of its fields, such as "16 shard|10 type|36 sequence".
func (l Layout) String() string {
	if l.Time != 0 && l.Type == 0 {
		return fmt.Sprintf("%d|%d|%d", l.Time, l.Shard, l.Sequence)
	}
	var fields []string
	if l.Time != 0 {
		fields = append(fields, fmt.Sprintf("%d time", l.Time))
	}
	fields = append(fields, fmt.Sprintf("%d shard", l.Shard))
	if l.Type != 0 {
		fields = append(fields, fmt.Sprintf("%d type", l.Type))
	}
	return strings.Join(append(fields, fmt.Sprintf("%d sequence", l.Sequence)), "|")
}

// HasTime reports whether an ID holds the time at which it was made.
func (l Layout) HasTime() bool { return l.Time > 0 }

// TimeBits returns how many bits of time an ID really holds: the width of the time, less one if it would include the sign
// bit.
func (l Layout) TimeBits() int { return min(l.Time, 63-l.low()) }

// low returns how many bits are below the time.
func (l Layout) low() int { return l.Shard + l.Type + l.Sequence }

// MaxShards returns how many shards the layout holds.
func (l Layout) MaxShards() int { return 1 << l.Shard }

// MaxTypes returns how many types the layout holds. Without bits of type it is 1: type 0.
func (l Layout) MaxTypes() int { return 1 << l.Type }

// Slots returns how many IDs a shard can make in one millisecond, 0 without a time.
func (l Layout) Slots() int {
	if !l.HasTime() {
		return 0
	}
	return 1 << l.Sequence
}

// MaxSequence returns the highest sequence that an ID can hold.
func (l Layout) MaxSequence() int64 { return 1<<l.Sequence - 1 }

// MaxMilliseconds returns the last millisecond since the epoch that an ID can hold, 0 without a time.
func (l Layout) MaxMilliseconds() int64 { return 1<<l.TimeBits() - 1 }

// MaxSequenceValue returns the last value that a shard's Postgres sequence may take. The value of such a sequence is the
// time and the slot of an ID, without the fields between them; without a time it is the ID's sequence.
func (l Layout) MaxSequenceValue() int64 { return 1<<(l.TimeBits()+l.Sequence) - 1 }
