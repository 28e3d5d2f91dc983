package shards

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoTime says that IDs of the layout hold no time.
var ErrNoTime = errors.New("the layout has no time")

// ErrBeforeEpoch says that a time is before the epoch, so that no ID can hold it.
var ErrBeforeEpoch = errors.New("the time lies before the epoch")

// ErrAfterEnd says that a time is at or after [Layout.End], so that no ID can hold it.
var ErrAfterEnd = errors.New("the time lies after the layout's end")

// Compose returns the ID with the given parts. It returns a [FieldError] for a part that does not fit in its field.
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
			return 0, &FieldError{Field: f.name, Found: fmt.Sprint(f.value), Expected: expected + " with layout " + l.String()}
		}
	}
	return ID(p.Milliseconds<<l.low() | int64(p.Shard)<<(l.Type+l.Sequence) | int64(p.Type)<<l.Sequence | p.Sequence), nil
}

// Parts splits an ID into its fields. The milliseconds are all the bits above the shard, even if the layout has no
// time: for an ID that the layout cannot hold they are negative or above [Layout.MaxMilliseconds].
func (l Layout) Parts(id ID) Parts {
	return Parts{
		Milliseconds: int64(id) >> l.low(),
		Shard:        Number(int64(id) >> (l.Type + l.Sequence) & (1<<l.Shard - 1)),
		Type:         int(int64(id) >> l.Sequence & (1<<l.Type - 1)),
		Sequence:     int64(id) & l.MaxSequence(),
	}
}

// shardOf returns the shard that an ID names. The error says why none of count shards can have made it.
func (l Layout) shardOf(id ID, count int) (Number, error) {
	parts := l.Parts(id)
	switch {
	case id < 0:
		return 0, fmt.Errorf("ID %d is negative", id)
	case parts.Milliseconds > l.MaxMilliseconds():
		return 0, fmt.Errorf("ID %d is above what layout %s holds", id, l)
	case int(parts.Shard) >= count:
		return 0, fmt.Errorf("ID %d names shard %d, the map has shards 0 to %d", id, parts.Shard, count-1)
	}
	return parts.Shard, nil
}

// smallestID returns the smallest number that counts as an ID rather than a key: the first ID of the second hour
// after the epoch. Without a time it is the smallest ID of shard 1, since those of shard 0 are small numbers.
func (l Layout) smallestID() int64 {
	if !l.HasTime() {
		return 1 << (l.Type + l.Sequence)
	}
	return time.Hour.Milliseconds() << l.low()
}

// TimeOf returns the time in an ID, to the millisecond, in UTC. For a layout without a time it is the zero [time.Time].
func (l Layout) TimeOf(id ID, epoch time.Time) time.Time {
	if !l.HasTime() {
		return time.Time{}
	}
	return addMilliseconds(epoch, l.Parts(id).Milliseconds)
}

// End returns the first time that is too late for an ID of the layout. For a layout without a time it is the zero
// [time.Time].
func (l Layout) End(epoch time.Time) time.Time {
	if !l.HasTime() {
		return time.Time{}
	}
	return addMilliseconds(epoch, l.MaxMilliseconds()+1)
}

// Milliseconds returns the milliseconds from epoch to t, rounded down, as an ID holds them. It returns
// [ErrBeforeEpoch] or [ErrAfterEnd] for a time that no ID can hold, and [ErrNoTime] if the layout has no time.
func (l Layout) Milliseconds(t, epoch time.Time) (int64, error) {
	switch {
	case !l.HasTime():
		return 0, fmt.Errorf("layout %s: %w", l, ErrNoTime)
	case t.Before(epoch):
		return 0, fmt.Errorf("%s with epoch %s: %w", t.UTC().Format(time.RFC3339Nano), epoch.UTC().Format(time.RFC3339Nano), ErrBeforeEpoch)
	case !t.Before(l.End(epoch)):
		return 0, fmt.Errorf("%s with end %s: %w", t.UTC().Format(time.RFC3339Nano), l.End(epoch).Format(time.RFC3339Nano), ErrAfterEnd)
	}
	ms := t.UnixMilli() - epoch.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) < epoch.Nanosecond()%int(time.Millisecond) {
		ms--
	}
	return ms, nil
}

// addMilliseconds is t.Add for more milliseconds than a [time.Duration] holds.
func addMilliseconds(t time.Time, ms int64) time.Time {
	rest := time.Duration(t.Nanosecond() % int(time.Millisecond))
	return time.UnixMilli(t.UnixMilli() + ms).Add(rest).UTC()
}
