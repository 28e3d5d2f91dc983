package primary

import (
	"context"
	"errors"
	"log/slog"
)

// log queues a record for the logger. The caller holds mu and releases it with unlock.
func (w *Watch) log(level slog.Level, message string, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("host", w.Host)}, attrs...)
	w.records = append(w.records, func() { w.Logger.LogAttrs(context.Background(), level, message, attrs...) })
}

// unlock releases mu and passes queued records to the logger. A handler may read statistics or make requests, so unlock
// calls it with no lock held. Only one goroutine at a time calls it, so records come in the order of events.
func (w *Watch) unlock() {
	if w.logging {
		w.mu.Unlock()
		return
	}
	w.logging = true
	for len(w.records) > 0 {
		records := w.records
		w.records = nil
		w.mu.Unlock()
		for _, pass := range records {
			pass()
		}
		w.mu.Lock()
	}
	w.logging = false
	w.mu.Unlock()
}

// logRival logs an address that takes writes although it is not the primary. It logs the address again only after it has
// stopped taking writes. The caller holds mu.
func (w *Watch) logRival(a *address) {
	if a.last.state != answered {
		a.rival = a.rival && a.last.state != down // one that does not answer may still take writes
		return
	}
	r, before, why := a.last.role, a.rival, w.unfit(a.last.role)
	if w.twoClusters() {
		why = errTwoClusters
	}
	a.rival = r.TakesWrites() && why != nil || w.primary != nil && a != w.primary && r.Rivals(w.primary.last.role)
	if !a.rival || before {
		return
	}
	if why == nil {
		why = errors.New("it is on the same timeline as the primary: it is the same server, or the two have different data")
	}
	attrs := []slog.Attr{slog.String("address", a.String())}
	if w.primary != nil {
		attrs = append(attrs, slog.String("primary", w.primary.String()))
	}
	w.log(slog.LevelWarn, "more than one primary", append(attrs, slog.Any("error", why))...)
}
