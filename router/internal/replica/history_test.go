package replica_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router/internal/replica"
)

// TestHistoryPromisesNothingThatWasNot has a primary's log grow at random, some of it on the disk later. Whatever place a
// replica has come to, it must have all that was visible at the time that the history tells, and when it has all, the time
// must be the last one.
func TestHistoryPromisesNothingThatWasNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const slack = 5 // ticks until what is in memory is on the disk
		start := time.Now()
		h := replica.NewHistory()
		inserted := []uint64{1} // by tick
		for range rapid.SampledFrom([]int{1, 3, 20, 200, 700, 2000}).Draw(t, "ticks") {
			tick := len(inserted)
			last := inserted[tick-1]
			inserted = append(inserted, last+uint64(rapid.IntRange(0, 3).Draw(t, "grows")))
			flushed := inserted[max(0, tick-rapid.IntRange(0, slack).Draw(t, "late"))]
			h.Add(start.Add(time.Duration(tick)), inserted[tick], flushed, slack)
		}
		last := inserted[len(inserted)-1]
		place := uint64(rapid.IntRange(0, int(last)+2).Draw(t, "place"))
		at := h.AsOf(place)
		if at.IsZero() {
			if place >= last {
				t.Fatalf("nothing is known of place %d, the log is at %d", place, last)
			}
			return
		}
		tick := int(at.Sub(start))
		if tick >= 0 && inserted[tick] > place {
			t.Fatalf("a replica at %d is said to be as of tick %d, when the log was at %d", place, tick, inserted[tick])
		}
		if place >= last && tick != len(inserted)-1 {
			t.Fatalf("a replica that has all is said to be as of tick %d of %d", tick, len(inserted)-1)
		}
	})
}
