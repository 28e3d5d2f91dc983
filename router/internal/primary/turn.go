package primary

import (
	"fmt"
	"log/slog"
	"time"
)

// turn has requests go to an address from now on, and closes all connections to the others. The caller holds mu.
func (w *Watch) turn(to *address) {
	first := w.latest == nil
	w.learn(to.last.role)
	for _, a := range w.addresses {
		if a != to {
			a.close(fmt.Errorf("the primary is now at %s", to))
		}
	}
	to.open()
	if !first && w.latest != to {
		w.changes++
		w.turns.Add(1)
		w.log(slog.LevelWarn, "primary changed", slog.String("from", w.latest.String()), slog.String("to", to.String()),
			slog.Any("timeline", w.timeline))
	}
	w.primary, w.latest = to, to
	w.Moved()
	w.rise()
}

// rise lets requests through again. The caller holds mu.
func (w *Watch) rise() {
	if w.up {
		return
	}
	w.up = true
	w.primary = w.latest
	w.primary.open()
	if w.risen {
		w.half.Store(true)
		w.log(slog.LevelInfo, "host up", slog.String("address", w.primary.String()),
			slog.Duration("down", time.Since(w.since).Round(time.Millisecond)))
	}
	w.cause, w.risen = nil, true
	w.Up()
	w.passing.Store(true)
}

// fall stops all requests that wait, and closes all connections if cut is true. If it is not, the server, which takes no
// new connections, may still have its old ones: they are closed when nothing has come from it for as long as it may be
// silent. The caller holds mu.
func (w *Watch) fall(cause error, cut bool) {
	w.cause = cause
	if !w.up {
		w.cutLate()
		return
	}
	w.up, w.since = false, time.Now()
	w.passing.Store(false)
	w.half.Store(false)
	w.turns.Add(1)
	why := w.downError()
	w.Down(why)
	if w.latest.bar(why); cut {
		w.latest.close(why)
	}
	w.left, w.leftAt = w.latest.callers.Load(), w.since
	if w.several {
		w.primary = nil
	}
	for _, a := range w.addresses {
		a.probeNow()
	}
	w.log(slog.LevelWarn, "host down", slog.String("address", w.latest.String()), slog.Any("error", cause))
}

// cutLate closes the connections to the former primary, once nothing comes by them any more. The caller holds mu.
func (w *Watch) cutLate() {
	if w.latest == nil {
		return
	}
	if received := w.latest.callers.Load(); received != w.left {
		w.left, w.leftAt = received, time.Now()
	} else if time.Since(w.leftAt) > w.FailAfter {
		w.latest.close(w.downError())
	}
}

// cutFormer closes the connections that lead to another server than a new one to the same address does, such as one that
// had the address before it was demoted. The caller holds mu.
func (w *Watch) cutFormer(a *address) {
	now := a.last.role.server
	former := func(c *Conn) bool { s := c.server.Load(); return s != nil && *s != now }
	if now == "" {
		return
	}
	n := a.cut(former)
	if n == 0 {
		return
	}
	w.turns.Add(1)
	w.log(slog.LevelWarn, "another server has the primary's address", slog.String("address", a.String()), slog.Int("closed", n))
	w.Moved()
}
