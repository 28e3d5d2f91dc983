package replica

import "time"

// mark is where the log of a primary was.
type mark struct {
	at       time.Time // before it was asked for
	inserted uint64    // the log in memory
	flushed  uint64    // the log on the disk
	slack    time.Duration
}

// history is where the log of a primary was, the oldest mark first. There are fewer old marks than new ones.
type history []mark

// historyMost is the most marks that are kept. At ten a second the oldest are minutes old, and later hours, since every
// second one of the older half is dropped.
const historyMost = 512

// add adds a mark, which is later than all others.
func (h *history) add(m mark) {
	all := append(*h, m)
	if len(all) > historyMost {
		kept := all[:0]
		for i, old := range all {
			if i%2 == 0 || i >= historyMost/2 {
				kept = append(kept, old)
			}
		}
		all = kept
	}
	*h = all
}

// asOf returns a time such that a server that has replayed the log up to lsn has everything that was visible on the primary
// then, and the zero time if none is known.
//
// Everything visible is in the log in memory, so a server that has replayed that has it. But a log that nobody commits to
// may stay in memory for long, and a replica that has all there is would then seem to be behind. Asynchronous commits are
// on the disk after three times wal_writer_delay at the latest, see
// https://www.postgresql.org/docs/current/wal-async-commit.html, and all others at once: so the log on the disk has what was
// visible that long ago.
func (h history) asOf(lsn uint64) time.Time {
	var asOf time.Time
	for i := len(h) - 1; i >= 0; i-- {
		m := h[i]
		if m.inserted <= lsn && m.at.After(asOf) {
			return m.at // no earlier mark can be better
		}
		if at := m.at.Add(-m.slack); m.flushed <= lsn && at.After(asOf) {
			asOf = at
		}
	}
	return asOf
}
