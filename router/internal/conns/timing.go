package conns

import (
	"time"
)

const (
	// patience is how long calls wait for a line that does not get on, before they go elsewhere, and how often lines are
	// looked at.
	patience = 5 * time.Millisecond

	// lateFloor is how long a group may take at least that is not late: a machine that is busy stalls now and then. One that
	// takes stuckAfter times as long as that, and that nobody waits for any more, is cancelled on the server.
	lateFloor  = 4 * patience
	stuckAfter = 5

	// What is late is asked for twice: one read in ten, and so many more at once. A server that is slow as a whole is not
	// given twice the work.
	twiceShare = 0.1
	twiceBurst = 64
)

// timing is how long groups take, from when there was a connection to their last answer: the mean and the mean deviation, as RFC 6298
// has it for round trips.
type timing struct{ mean, deviation time.Duration }

// answered takes note of how long a group took, also if it was late: so that when all of them are, it is usual.
func (t *timing) answered(took time.Duration) {
	if t.mean == 0 {
		t.mean, t.deviation = took, took/2
		return
	}
	t.deviation += ((took - t.mean).Abs() - t.deviation) / 4
	t.mean += (took - t.mean) / 8
}

// limit returns how long a group may take that is not late.
func (t *timing) limit() time.Duration { return max(lateFloor, t.mean+4*t.deviation) }
