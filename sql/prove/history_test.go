package prove_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// history is all that a test's clients received, before and after every fault. It is the suite's checker: what can be
// said of an ID when it arrives is checked then, that none came twice is checked by verdict in the end. It is safe for
// concurrent use.
type history struct {
	layout shards.Layout
	clock  *clock
	limits limits
	newest map[shards.Number]*atomic.Int64 // the largest ID of a shard that any session has received

	phase    atomic.Int32 // the index of the latest fault
	answered atomic.Int32 // the largest index of a fault after which IDs came, plus one

	mu       sync.Mutex // guards what follows
	faults   []string   // what was done, in this order; the first is the start
	sessions []*session
	problems problems
}

// limits says how far the time in an ID may lie outside the readings of the clock before and after the call that
// brought it, in milliseconds.
type limits struct{ behind, ahead int64 }

// limitsFor returns the limits for a number of sessions that are at work at once.
//
// The engine's window is 15 ms behind the clock, of which catch_up goes on from two slots for each of max_connections
// further back, and 5 ms ahead. A block of next_ids is drawn without a look at the clock, and each session may be about
// to draw one. Milliseconds are cut off, not rounded.
func limitsFor(sessions int) limits {
	const window, margin, ahead, block = 15, 1, 5, 128
	return limits{behind: window + margin + 1, ahead: ahead + 1 + int64(sessions*block/layout.Slots()) + 1}
}

// newHistory returns an empty history of the suite's shards.
func newHistory(c *clock, l limits) *history {
	h := &history{
		layout: layout, clock: c, limits: l, faults: []string{"the start"}, problems: make(problems),
		newest: make(map[shards.Number]*atomic.Int64),
	}
	for _, number := range numbers {
		h.newest[number] = new(atomic.Int64)
	}
	return h
}

// fault notes that something is about to be done to the server. Calls that begin afterwards are counted to it.
func (h *history) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
	h.phase.Store(int32(len(h.faults) - 1))
}

// session begins the record of one connection, whose calls all go to one shard.
func (h *history) session(shard shards.Number) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &session{history: h, number: len(h.sessions), shard: shard}
	h.sessions = append(h.sessions, s)
	return s
}

// session is what one connection received. It is not safe for concurrent use.
type session struct {
	history *history
	number  int
	shard   shards.Number

	ids     []shards.ID // as they came; guarded by the history's mu
	marks   []mark
	behind  int64 // the largest distances from the clock, in milliseconds
	ahead   int64
	longest time.Duration // the longest call
}

// mark says that from ids[at] on the IDs are of calls that began after the fault of that index.
type mark struct {
	at    int
	phase int32
}

// call is one statement on its way.
type call struct {
	session *session
	floor   shards.ID // what was received for the shard, by whomever, before the call began
	began   time.Time
}

func (s *session) begin() call {
	if phase := s.history.phase.Load(); len(s.marks) == 0 || s.marks[len(s.marks)-1].phase != phase {
		s.marks = append(s.marks, mark{len(s.ids), phase})
	}
	return call{s, shards.ID(s.history.newest[s.shard].Load()), time.Now()}
}

// end takes the IDs that the call brought, also if it failed afterwards.
//
// Each has to be of the session's shard, larger than the one before and than all that had been received when the call
// began, and near the clock. So IDs rise within a session, and those of a session that begins after a fault lie above
// all from before it.
func (c call) end(ids []shards.ID) {
	s, h := c.session, c.session.history
	ended := time.Now()
	s.longest = max(s.longest, ended.Sub(c.began))
	if len(ids) == 0 {
		return
	}
	lowest, highest := h.clock.readings(c.began, ended)
	last := c.floor
	for _, id := range ids {
		parts := h.layout.Parts(id)
		if parts.Shard != s.shard {
			h.report(wrongShard, "ID %d says shard %d, not %d (session %d)", id, parts.Shard, s.shard, s.number)
		}
		if id <= last {
			h.report(notRising, "ID %d came after %d (session %d)", id, last, s.number)
		}
		last = max(last, id)
		behind, ahead := lowest-parts.Milliseconds, parts.Milliseconds-highest
		s.behind, s.ahead = max(s.behind, behind), max(s.ahead, ahead)
		if behind > h.limits.behind {
			h.report(offClock, "ID %d is %d ms behind the clock (session %d)", id, behind, s.number)
		}
		if ahead > h.limits.ahead {
			h.report(offClock, "ID %d is %d ms ahead of the clock (session %d)", id, ahead, s.number)
		}
	}
	h.mu.Lock()
	s.ids = append(s.ids, ids...)
	h.answered.Store(max(h.answered.Load(), s.marks[len(s.marks)-1].phase+1))
	h.mu.Unlock()
	for newest := h.newest[s.shard]; ; {
		known := newest.Load()
		if int64(last) <= known || newest.CompareAndSwap(known, int64(last)) {
			return
		}
	}
}

// received returns how many IDs have come so far.
func (h *history) received() (count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		count += len(s.ids)
	}
	return count
}

// phaseOf returns the index of the latest fault before the call that brought ids[i].
func (s *session) phaseOf(i int) int32 {
	var phase int32
	for _, m := range s.marks {
		if m.at <= i {
			phase = m.phase
		}
	}
	return phase
}
