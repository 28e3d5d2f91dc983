package replica

import "time"

// History is where the log of a primary was.
type History struct{ log history }

// NewHistory returns one that is empty.
func NewHistory() *History { return &History{} }

// Add adds a mark.
func (h *History) Add(at time.Time, inserted, flushed uint64, slack time.Duration) {
	h.log.add(mark{at: at, inserted: inserted, flushed: flushed, slack: slack})
}

// AsOf returns as of when a replica is that has come to a position.
func (h *History) AsOf(lsn uint64) time.Time { return h.log.asOf(lsn) }
