package replica_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router/internal/replica"
)

// TestHistoryNeverClaimsTooMuch grows a primary's WAL at random, and flushes some of it later. At any position, a replica
// must have everything that was visible at the time that the history returns. If it has the whole WAL, the time must be that
// of the last mark.
func TestHistoryNeverClaimsTooMuch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const slack = 5 // ticks until the WAL in memory is on disk
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
				t.Fatalf("no time for position %d, although the WAL ends at %d", place, last)
			}
			return
		}
		tick := int(at.Sub(start))
		if tick >= 0 && inserted[tick] > place {
			t.Fatalf("a replica at %d counts as of tick %d, when the WAL ended at %d", place, tick, inserted[tick])
		}
		if place >= last && tick != len(inserted)-1 {
			t.Fatalf("a replica that has the whole WAL counts as of tick %d, expected %d", tick, len(inserted)-1)
		}
	})
}
