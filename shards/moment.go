package shards

import (
	"errors"
	"fmt"
	"time"
)

// TimeOf returns the time in an ID, to the millisecond, in UTC. For a layout without a time it is the zero
// [time.Time].
func (l Layout) TimeOf(id ID, epoch time.Time) time.Time {
	if !l.HasTime() {
		return time.Time{}
	}
	return addMilliseconds(epoch, l.Parts(id).Milliseconds)
}

// End returns the first time that is too late for an ID of the layout. For a layout without a time it is the
// zero [time.Time].
func (l Layout) End(epoch time.Time) time.Time {
	if !l.HasTime() {
		return time.Time{}
	}
	return addMilliseconds(epoch, l.MaxMilliseconds()+1)
}

// ErrNoTime says that IDs of the layout hold no time.
var ErrNoTime = errors.New("the layout has no time")

// ErrBeforeEpoch says that a time is before the epoch, so that no ID can hold it.
var ErrBeforeEpoch = errors.New("the time lies before the epoch")

// ErrAfterEnd says that a time is at or after [Layout.End], so that no ID can hold it.
var ErrAfterEnd = errors.New("the time lies after the layout's end")

// Milliseconds returns the milliseconds from epoch to t, rounded down, as an ID holds them.
// It returns [ErrBeforeEpoch] or [ErrAfterEnd] for a time that no ID can hold, and [ErrNoTime]
// if the layout has no time.
func (l Layout) Milliseconds(t, epoch time.Time) (int64, error) {
	switch {
	case !l.HasTime():
		return 0, fmt.Errorf("layout %s: %w", l, ErrNoTime)
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
