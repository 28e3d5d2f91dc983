package primary

import (
	"fmt"
	"log/slog"
	"time"
)

// switchTo makes an address the primary, and closes all connections to the others. The caller holds mu.
func (w *Watch) switchTo(to *address) {
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
	w.markUp()
}

// markUp admits requests again. The caller holds mu.
func (w *Watch) markUp() {
	if w.up {
		return
	}
	w.up = true
	w.primary = w.latest
	w.primary.open()
	if w.admitted {
		w.halfOpen.Store(true)
		w.log(slog.LevelInfo, "host up", slog.String("address", w.primary.String()),
			slog.Duration("down", time.Since(w.since).Round(time.Millisecond)))
	}
	w.cause, w.admitted = nil, true
	w.Up()
	w.passing.Store(true)
}

// markDown makes the host down: new requests wait in Admit or fail. If cut is true, it closes all connections. Otherwise the
// server accepts no new connections but may still serve old ones: these are closed when the server has sent nothing for
// FailAfter. The caller holds mu.
func (w *Watch) markDown(cause error, cut bool) {
	w.cause = cause
	if !w.up {
		w.cutLate()
		return
	}
	w.up, w.since = false, time.Now()
	w.passing.Store(false)
	w.halfOpen.Store(false)
	w.turns.Add(1)
	why := w.downError()
	w.Down(why)
	if w.latest.bar(why); cut {
		w.latest.close(why)
	}
	w.lastReads, w.lastReadAt = w.latest.callers.Load(), w.since
	if w.several {
		w.primary = nil
	}
	for _, a := range w.addresses {
		a.probeNow()
	}
	w.log(slog.LevelWarn, "host down", slog.String("address", w.latest.String()), slog.Any("error", cause))
}

// cutLate closes the connections to the former primary once it has sent nothing for FailAfter. The caller holds mu.
func (w *Watch) cutLate() {
	if w.latest == nil {
		return
	}
	if received := w.latest.callers.Load(); received != w.lastReads {
		w.lastReads, w.lastReadAt = received, time.Now()
	} else if time.Since(w.lastReadAt) > w.FailAfter {
		w.latest.close(w.downError())
	}
}

// cutFormer closes connections to a server that no longer has the address, such as one that was demoted. The caller holds
// mu.
func (w *Watch) cutFormer(a *address) {
	now := a.last.role.Server
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
