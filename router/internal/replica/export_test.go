package replica

import "time"

// History is the recorded WAL positions of a primary.
type History struct{ log history }

// NewHistory returns an empty history.
func NewHistory() *History { return &History{} }

// Add adds a mark.
func (h *History) Add(at time.Time, inserted, flushed uint64, slack time.Duration) {
	h.log.add(mark{at: at, inserted: inserted, flushed: flushed, slack: slack})
}

// AsOf returns the time as of which a replica that has replayed up to lsn has everything.
func (h *History) AsOf(lsn uint64) time.Time { return h.log.asOf(lsn) }
