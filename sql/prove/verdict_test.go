package prove_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// The kinds of problems.
const (
	duplicate  = "given more than once"
	notRising  = "not rising"
	wrongShard = "of another shard"
	offClock   = "far from the clock"
)

// shown is how many problems of a kind are written out.
const shown = 10

// problems are what was found wrong, by its kind.
type problems map[string]*problem

// problem is one kind of problem: how often it was found, and the first few.
type problem struct {
	count int
	first []string
}

func (h *history) report(kind, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems.add(kind, 1, func() string { return fmt.Sprintf(format, args...) })
}

func (p problems) add(kind string, count int, text func() string) {
	if p[kind] == nil {
		p[kind] = &problem{}
	}
	p[kind].count += count
	if len(p[kind].first) < shown {
		p[kind].first = append(p[kind].first, text())
	}
}

func (p problems) String() string {
	var b strings.Builder
	for _, kind := range []string{duplicate, notRising, wrongShard, offClock} {
		if found := p[kind]; found != nil {
			fmt.Fprintf(&b, "%d IDs were %s; the first %d:\n  %s\n", found.count, kind, len(found.first), strings.Join(found.first, "\n  "))
		}
	}
	return b.String()
}

// verdict is what is to be said of a history.
type verdict struct {
	ids, sessions, faults int
	duplicates            int   // how many IDs were given more than once
	across                int   // how many of those before and after a fault
	behind, ahead         int64 // the largest distances from the clock, in milliseconds
	longest               time.Duration
	silent                []string // the faults after which no IDs came
	problems              problems
}

// verdict looks for IDs that were given more than once, and sums up. No call may be under way.
func (h *history) verdict() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := verdict{sessions: len(h.sessions), faults: len(h.faults) - 1, problems: h.problems}
	var all []shards.ID
	after := make([]int, len(h.faults))
	for _, s := range h.sessions {
		for i, m := range s.marks {
			until := len(s.ids)
			if i+1 < len(s.marks) {
				until = s.marks[i+1].at
			}
			after[m.phase] += until - m.at
		}
		all = append(all, s.ids...)
		v.behind, v.ahead, v.longest = max(v.behind, s.behind), max(v.ahead, s.ahead), max(v.longest, s.longest)
	}
	v.ids = len(all)
	for i, count := range after {
		if count == 0 {
			v.silent = append(v.silent, h.faults[i])
		}
	}
	twice := repeated(all)
	v.duplicates, v.across = len(twice), h.acrossFaults(twice)
	for _, id := range twice {
		h.problems.add(duplicate, 1, func() string { return h.whoReceived(id) })
	}
	return v
}

// repeated sorts the IDs, and returns those that are there more than once, once each.
func repeated(ids []shards.ID) []shards.ID {
	slices.Sort(ids)
	var twice []shards.ID
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] && (i == 1 || ids[i] != ids[i-2]) {
			twice = append(twice, ids[i])
		}
	}
	return twice
}

// acrossFaults returns how many of the IDs, which are in order, were received both before and after a fault. The caller
// holds the lock.
func (h *history) acrossFaults(twice []shards.ID) (count int) {
	if len(twice) == 0 {
		return 0
	}
	const none, counted = -1, -2
	phases := slices.Repeat([]int32{none}, len(twice))
	for _, s := range h.sessions {
		for i, id := range s.ids {
			at, found := slices.BinarySearch(twice, id)
			if !found || phases[at] == counted {
				continue
			}
			switch phase := s.phaseOf(i); phases[at] {
			case none:
				phases[at] = phase
			case phase:
			default:
				phases[at] = counted
				count++
			}
		}
	}
	return count
}

// whoReceived says which sessions received an ID, and after which faults. The caller holds the lock.
func (h *history) whoReceived(id shards.ID) string {
	var times int
	var who []string
	for _, s := range h.sessions {
		for i, own := range s.ids {
			if own == id {
				times++
				who = append(who, fmt.Sprintf("session %d after %s", s.number, h.faults[s.phaseOf(i)]))
			}
		}
	}
	parts := h.layout.Parts(id)
	return fmt.Sprintf("ID %d %d times: %s, shard %d, slot %d: %s", id, times,
		h.layout.TimeOf(id, epoch).UTC().Format("2006-01-02 15:04:05.000"), parts.Shard, parts.Sequence, strings.Join(who, ", "))
}

// ok says whether nothing was found wrong.
func (v verdict) ok() bool { return len(v.problems) == 0 }

// check fails the test if anything is wrong with the IDs, or if there were too few to say so, and logs the figures.
func (h *history) check(t *testing.T) verdict {
	t.Helper()
	v := h.verdict()
	t.Log(v)
	if len(v.silent) > 0 {
		t.Errorf("no IDs came after: %s", strings.Join(v.silent, ", "))
	}
	if v.ids < 1000 {
		t.Errorf("%d IDs are too few to say anything", v.ids)
	}
	if !v.ok() {
		t.Errorf("the IDs are not right:\n%s", v.problems)
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d IDs received by %d sessions, %d faults done, %d duplicates (%d across a fault), at most %d ms behind and %d ms ahead of the clock, longest call %d ms",
		v.ids, v.sessions, v.faults, v.duplicates, v.across, v.behind, v.ahead, v.longest.Milliseconds())
}
