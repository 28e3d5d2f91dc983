package mapstore

import (
	"context"

	"github.com/kiloshard/kiloshard/shards"
)

// watcher is the state of one watcher of a feed.
type watcher struct {
	seen  int         // the newest version
	m     *shards.Map // of that version; nil while only its number is known
	back  int         // the version of the last WentBackError, noMap or notBack
	count int         // of the news that the watcher has seen
}

const (
	noMap   = -1
	notBack = -2
)

// report yields the news that the watcher has not seen. It returns false if the watcher leaves.
func (w *watcher) report(ctx context.Context, n news, yield func(Entry, error) bool) bool {
	before := w.count
	w.count = n.count
	if n.entryAt > before && !w.reportEntry(n.entry, yield) {
		return false
	}
	if n.errAt > before && n.errAt > n.entryAt {
		return ctx.Err() == nil && yield(Entry{}, n.err)
	}
	return true
}

// reportEntry yields a newer map, or once a WentBackError for an older one, or another one of the same version.
func (w *watcher) reportEntry(e Entry, yield func(Entry, error) bool) bool {
	version := e.version()
	switch {
	case e.Map != nil && version > w.seen:
		w.seen, w.m, w.back = version, e.Map, notBack
		return yield(e, nil)
	case version == w.seen && (w.m == nil || sameMap(w.m, e.Map)):
		w.m, w.back = e.Map, notBack
		return true
	}
	back := version
	if e.Map == nil {
		back = noMap
	}
	if w.back == back {
		return true
	}
	w.back = back
	return yield(Entry{}, &WentBackError{Seen: w.seen, Found: version})
}
