package replica

import "time"

// mark is where the log of a primary was.
type mark struct {
	at       time.Time // before it was asked for
	inserted uint64    // the log in memory
	flushed  uint64    // the log on the disk
	slack    time.Duration
}

// history is where the log of a primary was, the oldest mark first. Old ones are fewer than new ones.
type history []mark

// historyMost is how many marks there are at most. With ten a second the oldest of them are from some minutes ago, and
// from hours ago after a while, since every other one of the older half is forgotten.
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

// asOf returns a time such that a server that has replayed the log as far as lsn has everything that could be seen on the
// primary then, and the zero time if none is known.
//
// All that is visible is in the log in memory. Whoever has replayed that has it. But a log that nobody commits to may stay
// in memory for long, and then a replica that has all there is to be had would seem to be behind. What was committed
// without waiting for the disk is there after three times wal_writer_delay at the latest, see
// https://www.postgresql.org/docs/current/wal-async-commit.html, everything else at once: so the log on the disk has what
// was visible that long ago.
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
