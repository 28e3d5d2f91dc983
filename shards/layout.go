package shards

import (
	"errors"
	"fmt"
	"time"
)

// maxTimeBits keeps a layout's last moment, 4,459 years after its epoch, a date that Postgres and Go
// can write.
const maxTimeBits = 47

// maxShardBits keeps every shard number within the five digits of a schema's name.
const maxShardBits = 16

// ID is a 64-bit identifier made by a shard's next_id(). Its fields are told apart by a [Layout].
type ID int64

// Number is the number of a shard, from 0 up.
type Number int32

// Layout says how the 64 bits of an ID are split, in bits. The fields stand in this order, the
// time highest.
//
// The widths may add up to 64, as Instagram's do. The sign bit stays clear all the same, so that
// the time then has one bit less than its width says; see [Layout.TimeBits].
type Layout struct {
	Time     int `json:"time"`
	Shard    int `json:"shard"`
	Sequence int `json:"sequence"`
}

// DefaultLayout is the one that Instagram published: 41 bits of time, 13 of shard, 10 of sequence.
var DefaultLayout = Layout{Time: 41, Shard: 13, Sequence: 10}

// Parts are the fields of an ID.
type Parts struct {
	Milliseconds int64  // since the epoch
	Shard        Number // 0-based
	Sequence     int    // 0-based slot within the millisecond
}

// Validate returns a [FieldError] for a layout that no ID can be made with.
func (l Layout) Validate() error {
	fields := []struct {
		name     string
		bits     int
		min, max int
	}{
		{"time", l.Time, 1, maxTimeBits},
		{"shard", l.Shard, 1, maxShardBits},
		{"sequence", l.Sequence, 1, 22},
	}
	for _, f := range fields {
		if f.bits < f.min || f.bits > f.max {
			return &FieldError{
				Field:    "layout." + f.name,
				Found:    fmt.Sprintf("%d bits", f.bits),
				Expected: fmt.Sprintf("%d to %d bits", f.min, f.max),
			}
		}
	}
	if sum := l.Time + l.Shard + l.Sequence; sum > 64 {
		return &FieldError{
			Field:    "layout",
			Found:    fmt.Sprintf("%s, which is %d bits", l, sum),
			Expected: "at most 64 bits in all",
		}
	}
	return nil
}

// String returns the widths in bits, such as "41|13|10".
func (l Layout) String() string {
	return fmt.Sprintf("%d|%d|%d", l.Time, l.Shard, l.Sequence)
}

// TimeBits returns how many bits of time an ID really holds: the width of the time, less what the
// sign bit takes away.
func (l Layout) TimeBits() int { return min(l.Time, 63-l.Shard-l.Sequence) }

// MaxShards returns how many shards the layout holds.
func (l Layout) MaxShards() int { return 1 << l.Shard }

// Slots returns how many IDs a shard can make in one millisecond.
func (l Layout) Slots() int { return 1 << l.Sequence }

// MaxMilliseconds returns the last millisecond since the epoch that an ID can hold.
func (l Layout) MaxMilliseconds() int64 { return 1<<l.TimeBits() - 1 }

// MaxSequenceValue returns the last value that a shard's Postgres sequence may take. The value of
// such a sequence is the time and the slot of an ID, without the shard between them.
func (l Layout) MaxSequenceValue() int64 { return 1<<(l.TimeBits()+l.Sequence) - 1 }

// End returns the first moment for which the layout can make no ID any more.
func (l Layout) End(epoch time.Time) time.Time { return addMilliseconds(epoch, l.MaxMilliseconds()+1) }

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
		{"sequence", int64(p.Sequence), int64(l.Slots()) - 1},
	}
	for _, f := range fields {
		if f.value < 0 || f.value > f.max {
			return 0, &FieldError{
				Field:    f.name,
				Found:    fmt.Sprint(f.value),
				Expected: fmt.Sprintf("0 to %d with layout %s", f.max, l),
			}
		}
	}
	return ID(p.Milliseconds<<(l.Shard+l.Sequence) | int64(p.Shard)<<l.Sequence | int64(p.Sequence)), nil
}

// Parts takes an ID apart. The IDs of a shard are never negative; of a negative one the
// milliseconds are negative too.
func (l Layout) Parts(id ID) Parts {
	return Parts{
		Milliseconds: int64(id) >> (l.Shard + l.Sequence),
		Shard:        Number(int64(id) >> l.Sequence & (1<<l.Shard - 1)),
		Sequence:     int(int64(id) & (1<<l.Sequence - 1)),
	}
}

// TimeOf returns the moment that is in an ID, to the millisecond, in UTC.
func (l Layout) TimeOf(id ID, epoch time.Time) time.Time {
	return addMilliseconds(epoch, l.Parts(id).Milliseconds)
}

// ErrBeforeEpoch says that a moment lies before the epoch, so that no ID can hold it.
var ErrBeforeEpoch = errors.New("the time lies before the epoch")

// ErrAfterEnd says that a moment lies at or after [Layout.End], so that no ID can hold it.
var ErrAfterEnd = errors.New("the time lies after the layout's end")

// Milliseconds returns the milliseconds from epoch to t, rounded down, as they stand in an ID.
// It returns [ErrBeforeEpoch] or [ErrAfterEnd] for a moment that no ID can hold.
func (l Layout) Milliseconds(t, epoch time.Time) (int64, error) {
	switch {
	case t.Before(epoch):
		return 0, fmt.Errorf("%s with epoch %s: %w", t.UTC().Format(time.RFC3339Nano), epoch.UTC().Format(time.RFC3339Nano), ErrBeforeEpoch)
	case !t.Before(l.End(epoch)):
		return 0, fmt.Errorf("%s with end %s: %w", t.UTC().Format(time.RFC3339Nano), l.End(epoch).Format(time.RFC3339Nano), ErrAfterEnd)
	}
	seconds := t.Unix() - epoch.Unix()
	nanoseconds := int64(t.Nanosecond() - epoch.Nanosecond())
	return seconds*1000 + floorDiv(nanoseconds, int64(time.Millisecond)), nil
}

// addMilliseconds is t.Add for more milliseconds than a [time.Duration] holds.
func addMilliseconds(t time.Time, ms int64) time.Time {
	seconds := floorDiv(ms, 1000)
	rest := time.Duration(ms-seconds*1000) * time.Millisecond
	return time.Unix(t.Unix()+seconds, int64(t.Nanosecond())).Add(rest).UTC()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
