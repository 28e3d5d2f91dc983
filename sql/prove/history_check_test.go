package prove_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// made returns an ID of a shard that was made some milliseconds from now.
func made(t *testing.T, number shards.Number, fromNow, slot int) shards.ID {
	t.Helper()
	milliseconds := wall(time.Now()).Milliseconds() + int64(fromNow)
	id, err := layout.Compose(shards.Parts{Milliseconds: milliseconds, Shard: number, Sequence: int64(slot)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestTheCheckerFindsEachKindOfProblem enters histories with one thing wrong each.
func TestTheCheckerFindsEachKindOfProblem(t *testing.T) {
	t.Parallel()
	later := func(id shards.ID, slots int) shards.ID { return id + shards.ID(slots) }
	for _, test := range []struct {
		name  string
		enter func(h *history, id shards.ID)
		want  map[string]int
	}{
		{"nothing", func(h *history, id shards.ID) {
			a, b := h.session(hot), h.session(hot)
			a.begin().end([]shards.ID{id, later(id, 2)})
			b.begin().end(nil)
			b.begin().end([]shards.ID{later(id, 3)})
			h.session(idle).begin().end([]shards.ID{id - shards.ID(hot)<<layout.Sequence})
		}, nil},
		{"calls side by side", func(h *history, id shards.ID) {
			a, b := h.session(hot).begin(), h.session(hot).begin()
			a.end([]shards.ID{later(id, 1), later(id, 4)})
			b.end([]shards.ID{id, later(id, 2), later(id, 3)})
		}, nil},
		{"one ID for two sessions", func(h *history, id shards.ID) {
			a, b := h.session(hot).begin(), h.session(hot).begin()
			a.end([]shards.ID{id})
			b.end([]shards.ID{id})
		}, map[string]int{duplicate: 1}},
		{"one ID three times, another one twice", func(h *history, id shards.ID) {
			for range 2 {
				h.session(hot).begin().end([]shards.ID{id, later(id, 1)})
			}
			h.session(hot).begin().end([]shards.ID{id})
		}, map[string]int{duplicate: 2, notRising: 3}},
		{"the same ID after a fault", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{id})
			h.fault("a fault")
			h.session(hot).begin().end([]shards.ID{id})
		}, map[string]int{duplicate: 1, notRising: 1}},
		{"falling in a call", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{id, later(id, 2), later(id, 1)})
		}, map[string]int{notRising: 1}},
		{"falling in a session", func(h *history, id shards.ID) {
			s := h.session(hot)
			s.begin().end([]shards.ID{later(id, 1)})
			s.begin().end([]shards.ID{id})
		}, map[string]int{notRising: 1}},
		{"a new session below what was received before a fault", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{later(id, 1)})
			h.fault("a fault")
			h.session(hot).begin().end([]shards.ID{id})
		}, map[string]int{notRising: 1}},
		{"the neighbour's shard", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{id + 1<<layout.Sequence})
		}, map[string]int{wrongShard: 1}},
		{"behind the clock", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{made(t, hot, -100, 0)})
		}, map[string]int{offClock: 1}},
		{"ahead of the clock", func(h *history, id shards.ID) {
			h.session(hot).begin().end([]shards.ID{made(t, hot, 100, 0), made(t, hot, 200, 0)})
		}, map[string]int{offClock: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(newClock(), limits{behind: 20, ahead: 20})
			test.enter(h, made(t, hot, 0, 0))
			v := h.verdict()
			for _, kind := range []string{duplicate, notRising, wrongShard, offClock} {
				got := 0
				if v.problems[kind] != nil {
					got = v.problems[kind].count
				}
				if got != test.want[kind] {
					t.Errorf("%d IDs %s, expected %d:\n%v", got, kind, test.want[kind], v.problems)
				}
			}
			if v.ok() != (test.want == nil) || v.duplicates != test.want[duplicate] {
				t.Errorf("verdict: ok %v with %d duplicates", v.ok(), v.duplicates)
			}
		})
	}
}

// TestTheVerdictTellsWho checks the text on a duplicate, and that a fault without IDs after it is named.
func TestTheVerdictTellsWho(t *testing.T) {
	t.Parallel()
	h := newHistory(newClock(), limits{behind: 20, ahead: 20})
	id := made(t, hot, 0, 5)
	a := h.session(hot)
	a.begin().end([]shards.ID{id - 1})
	h.fault("kill 1")
	a.begin().end([]shards.ID{id})
	h.fault("kill 2")
	h.session(hot).begin().end([]shards.ID{id})
	h.fault("kill 3")
	v := h.verdict()
	at := layout.TimeOf(id, epoch).UTC().Format("15:04:05.000")
	for _, want := range []string{
		"1 IDs were given more than once", " 2 times: ", at, "shard 7, slot 5", "session 0 after kill 1, session 1 after kill 2",
	} {
		if !strings.Contains(v.problems.String(), want) {
			t.Errorf("expected %q in:\n%v", want, v.problems)
		}
	}
	if len(v.silent) != 1 || v.silent[0] != "kill 3" {
		t.Errorf("no IDs came after %v, expected kill 3", v.silent)
	}
	if v.across != 1 {
		t.Errorf("%d duplicates across a fault, expected 1", v.across)
	}
	if v.ids != 3 || v.sessions != 2 || v.faults != 3 {
		t.Errorf("wrong figures: %v", v)
	}
}
