package prove_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// TestReadingsOfAClockThatSteps compares what the clock can have shown with a history of steps.
func TestReadingsOfAClockThatSteps(t *testing.T) {
	t.Parallel()
	c := newClock()
	now := time.Now()
	base := wall(now).Milliseconds()
	after := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	change := func(from, until, offset, highest int) change {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		return change{wall(after(from)), wall(after(until)), ms(offset), wall(after(highest))}
	}
	c.changes = append(c.changes,
		change(1000, 1001, 2000, 3001),  // ahead
		change(2000, 2001, 0, 4001),     // back again
		change(3000, 3001, -2000, 4001), // further back
	)
	for _, test := range []struct{ began, ended, lowest, highest int }{
		{100, 200, 100, 200},
		{900, 999, 900, 999},
		{1100, 1200, 3100, 3200},
		{900, 1200, 900, 3200},   // over the step ahead
		{1900, 2100, 2000, 4001}, // over the step back
		{2100, 2200, 2100, 4001}, // the clock has been higher
		{3100, 3200, 1100, 4001},
		{500, 6500, 500, 4500},
		{7000, 7100, 5000, 5100},
		{6900, 6950, 4900, 5100}, // it was higher, by a call that came in before
	} {
		lowest, highest := c.readings(after(test.began), after(test.ended))
		if lowest-base != int64(test.lowest) || highest-base != int64(test.highest) {
			t.Errorf("from %d to %d: %d to %d, expected %d to %d",
				test.began, test.ended, lowest-base, highest-base, test.lowest, test.highest)
		}
	}
}

func TestHistoryOfAClockThatSteps(t *testing.T) {
	t.Parallel()
	c := newClock()
	h := newHistory(c, limits{behind: 20, ahead: 20})
	set := func(offset time.Duration) {
		if err := c.set(offset, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s := h.session(hot)
	s.begin().end([]shards.ID{made(t, hot, 0, 0)})
	set(2 * time.Second)
	s.begin().end([]shards.ID{made(t, hot, 2000, 0)})
	set(0)
	s.begin().end([]shards.ID{made(t, hot, 2000, 1)}) // as far ahead as the clock leapt
	if v := h.verdict(); !v.ok() {
		t.Errorf("expected nothing wrong:\n%v", v.problems)
	}
	s.begin().end([]shards.ID{made(t, hot, 2500, 0)}) // further ahead than it ever was
	if v := h.verdict(); v.problems[offClock] == nil {
		t.Error("an ID beyond the highest reading was not found")
	}
	if cause := errors.New("cause"); !errors.Is(c.set(0, func() error { return cause }), cause) {
		t.Error("the error of a change was lost")
	}
}
