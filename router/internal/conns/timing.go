package conns

import (
	"time"
)

const (
	// stallLimit is how long requests wait for a lane that makes no progress before they go elsewhere, and the interval at
	// which lanes are checked.
	stallLimit = 5 * time.Millisecond

	// lateFloor is the shortest time after which a group is late: a busy machine stalls now and then. A group that takes
	// stuckAfter times its limit, and that nobody waits for any more, is cancelled on the server.
	lateFloor  = 4 * stallLimit
	stuckAfter = 5

	// resendShare of all reads may be sent again because they are late, and resendBurst more at once: a server that is slow
	// as a whole is not given twice the work.
	resendShare = 0.1
	resendBurst = 64
)

// timing is how long groups take, from when there was a connection to their last answer: the mean and the mean deviation, as RFC 6298
// has it for round trips.
type timing struct{ mean, deviation time.Duration }

// answered notes how long a group took, even if it was late: when all groups are slow, that is normal.
func (t *timing) answered(took time.Duration) {
	if t.mean == 0 {
		t.mean, t.deviation = took, took/2
		return
	}
	t.deviation += ((took - t.mean).Abs() - t.deviation) / 4
	t.mean += (took - t.mean) / 8
}

// limit returns the time after which a group is late.
func (t *timing) limit() time.Duration { return max(lateFloor, t.mean+4*t.deviation) }
