package model

import (
	"strings"
	"testing"
)

// begin is a shard on which each session makes so many calls, the first few of them of next_ids(). The clock is as far
// ahead of the sequence as it may be without a setter, or where more says.
func begin(calls [sessions]int8, bulk int, more world) world {
	w := more
	if w.clock == 0 {
		w.clock = margin
	}
	for i := range w.s {
		w.s[i] = session{calls: calls[i], bulk: i < bulk}
	}
	return w
}

// scenarios are what the engine has to bear.
var scenarios = map[string]world{
	"two calls, two, one":   begin([3]int8{2, 2, 1}, 0, world{ticks: 3}),
	"near at first":         begin([3]int8{2, 2, 1}, 0, world{ticks: 3, clock: behind}),
	"next_ids":              begin([3]int8{1, 1, 1}, 1, world{ticks: 2}),
	"next_ids by two":       begin([3]int8{1, 1, 0}, 2, world{ticks: 2, clock: behind}),
	"many calls":            begin([3]int8{1, 4, 1}, 0, world{ticks: 1}),
	"a clock that steps":    begin([3]int8{1, 3, 2}, 0, world{ticks: 1, steps: 1}),
	"it leaps and steps":    begin([3]int8{1, 1, 2}, 0, world{ticks: 1, leaps: 1, steps: 1}),
	"canceled calls":        begin([3]int8{1, 3, 2}, 0, world{clock: margin + 2, ticks: 1, cancels: 3}),
	"canceled next_ids":     begin([3]int8{1, 2, 1}, 1, world{ticks: 1, cancels: 2}),
	"a crash":               begin([3]int8{2, 1, 1}, 0, world{ticks: 2, crashes: 1}),
	"a crash in next_ids":   begin([3]int8{1, 1, 1}, 1, world{ticks: 1, crashes: 1}),
	"a step, then a crash":  begin([3]int8{2, 1, 1}, 0, world{ticks: 1, steps: 1, crashes: 1}),
	"cancels, steps, ticks": begin([3]int8{1, 2, 1}, 0, world{ticks: 2, steps: 1, cancels: 1}),
}

func TestTheEngineGivesNoValueTwice(t *testing.T) {
	t.Parallel()
	for name, w := range scenarios {
		t.Run(name, func(t *testing.T) {
			worlds, story := explore(engine{}, rules{}, w)
			t.Logf("%d worlds", worlds)
			if story != "" {
				t.Errorf("a value is given twice:\n%s", story)
			}
			if worlds < 1000 {
				t.Errorf("%d worlds are too few to say anything", worlds)
			}
		})
	}
}

// TestEachSafeguardIsNeeded takes one out at a time.
func TestEachSafeguardIsNeeded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		without engine
		in      string // the scenario
	}{
		"the margin of a value a session":     {engine{noMargin: true}, "near at first"},
		"the lock of setters":                 {engine{noSetterLock: true}, "two calls, two, one"},
		"the last value, read under the lock": {engine{noLastCheck: true}, "two calls, two, one"},
		"the second reading of the clock":     {engine{noSecondClock: true}, "a clock that steps"},
		"the lock between window and margin":  {engine{noZoneLock: true}, "many calls"},
		"the look of next_ids for each value": {engine{blindBlock: true}, "next_ids"},
		"the look before the draw":            {engine{drawFirst: true}, "canceled calls"},
		"a sequence without a cache":          {engine{cached: true}, "near at first"},
	} {
		t.Run(name, func(t *testing.T) {
			_, story := explore(test.without, rules{}, scenarios[test.in])
			if !strings.HasSuffix(story, "given before") {
				t.Fatalf("without it no value is given twice: %q", story)
			}
			t.Logf("without it:\n%s", story)
		})
	}
}

// TestWhatIsLeftOpen shows that what engine.sql lists does happen, so that the rules of the model leave out no more.
func TestWhatIsLeftOpen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rules
		world
	}{
		"a. a step back while a setter is within its expression": {rules{stepInGap: true}, begin([3]int8{1, 3, 2}, 0, world{ticks: 1, steps: 1})},
		"b. a lead, then lost WAL":                               {rules{crashOnLead: true}, begin([3]int8{1, 3, 0}, 0, world{leaps: 1, steps: 1, crashes: 1})},
		"c. lost WAL, and the clock is behind":                   {rules{crashBack: true}, begin([3]int8{2, 1, 1}, 0, world{crashes: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			_, story := explore(engine{}, test.rules, test.world)
			if !strings.HasSuffix(story, "given before") {
				t.Fatalf("it does not happen: %q", story)
			}
			t.Log("\n" + story)
			if _, story := explore(engine{}, rules{}, test.world); story != "" {
				t.Errorf("it happens without that, too:\n%s", story)
			}
		})
	}
}
