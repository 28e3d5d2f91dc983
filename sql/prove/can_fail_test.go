package prove_test

import (
	"testing"
	"time"
)

// These always run other functions than the subject, and expect the duplicates that the other tests must not find.

// TestFrozenSessionsOfThePublishedFunction shows that the suite finds what two sessions in one millisecond do to it.
func TestFrozenSessionsOfThePublishedFunction(t *testing.T) {
	t.Parallel()
	rounds := 3
	hasDuplicates(t, func(v verdict) int { return v.duplicates }, func() *history {
		defer func() { rounds = min(2*rounds, 100) }() // the slower the machine, the fewer IDs have a millisecond in common
		return frozenSessions(t, published, rounds, 200*time.Millisecond)
	})
}

// TestClockStepOfThePublishedFunction shows that the suite finds what a clock that steps back does to it.
func TestClockStepOfThePublishedFunction(t *testing.T) {
	t.Parallel()
	hasDuplicates(t, func(v verdict) int { return v.across }, func() *history {
		h, work, f := clockLoad(t, published)
		loadFor(t, time.Second)
		work.fault("a step of the clock by 2 s back")
		f.step(t, -step)
		loadFor(t, step)
		work.stop()
		return h
	})
}

// TestLostWALOfABareSequence shows that the suite finds IDs that come again because their first giving was lost.
func TestLostWALOfABareSequence(t *testing.T) {
	t.Parallel()
	hasDuplicates(t, func(v verdict) int { return v.across }, func() *history {
		h, _ := promoteWithLoss(t, bare)
		return h
	})
}

// hasDuplicates looks for IDs that were given twice, of those that count. It is a matter of chance, so there is more
// than one attempt.
func hasDuplicates(t *testing.T, count func(verdict) int, attempt func() *history) {
	t.Helper()
	for range 10 {
		v := attempt().verdict()
		if count(v) > 0 {
			t.Logf("as expected: %v", v)
			t.Logf("for one: %s", v.problems[duplicate].first[0])
			return
		}
	}
	t.Fatal("no ID was found twice: the suite cannot find what it is for")
}
