package prove_test

import (
	"testing"
	"time"
)

// TestClockSteps steps the engine's clock ahead and back by 2 seconds, and has it drift both ways, under load.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	const drift = 100 * time.Millisecond
	length := form(300*time.Millisecond, time.Second)
	h, work, f := clockLoad(t, chosen)
	for range form(1, 3) {
		loadFor(t, length)
		work.fault("a step of the clock by 2 s ahead")
		f.step(t, step)
		loadFor(t, length)
		work.fault("a step of the clock by 2 s back")
		f.step(t, 0)
		loadFor(t, step+length) // until the clock has been where it stepped back from
		work.fault("another step of the clock by 2 s back")
		f.step(t, -step)
		loadFor(t, length) // in the midst of what was given out before
		work.fault("a drift of the clock back")
		f.drift(t, -step, -step-drift, length)
		work.fault("a drift of the clock ahead")
		f.drift(t, -step-drift, -step, length)
		work.fault("a step of the clock to where it should be")
		f.step(t, 0)
		loadFor(t, length)
	}
	work.stop()
	h.check(t)
}

const step = 2 * time.Second

// clockLoad starts a load on a server whose clock can be set.
func clockLoad(t *testing.T, s subject) (*history, *load, *setClock) {
	t.Helper()
	const sessions = 24
	server, f := startSetClock(t, s)
	// While the clock is behind where it was, a session makes an ID a millisecond, which adds to the sequence's lead.
	l := limitsFor(sessions)
	l.ahead += step.Milliseconds() * sessions / int64(layout.Slots())
	h := newHistory(f.clock, l)
	return h, startLoad(t, h, loadConfig{dsn: targetOn(server).dsn, sessions: sessions}), f
}
