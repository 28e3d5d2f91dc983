package replica

import "time"

// mark is the WAL position of a primary at a time.
type mark struct {
	at       time.Time     // before the query was sent
	inserted uint64        // end of the WAL in memory
	flushed  uint64        // end of the WAL on disk
	slack    time.Duration // the longest time from a commit to its flush
}

// history is the recorded WAL positions of a primary, the oldest first. Old marks are further apart than new ones.
type history []mark

// historyLimit is the largest number of marks. When there are more, add drops every second mark of the older half. So at
// ten marks a second the oldest are minutes old at first, and hours old later.
const historyLimit = 512

// add adds a mark, which must be later than all others.
func (h *history) add(m mark) {
	all := append(*h, m)
	if len(all) > historyLimit {
		kept := all[:0]
		for i, old := range all {
			if i%2 == 0 || i >= historyLimit/2 {
				kept = append(kept, old)
			}
		}
		all = kept
	}
	*h = all
}

// asOf returns a time. A server that has replayed the WAL up to lsn has everything that was visible on the primary at that
// time. The time is zero if it is unknown.
//
// All visible changes are in the WAL in memory, so a server that has replayed that WAL has them. But WAL without a commit
// may stay in memory for long, and then a replica that has all commits would seem to be behind. Asynchronous commits reach
// the disk within three times wal_writer_delay (https://www.postgresql.org/docs/current/wal-async-commit.html), and all
// other commits at once. So the WAL on disk has everything that was visible that long ago.
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
