package mapstore

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
)

// feed passes what one goroutine learns about a store to all watchers, so that a thousand watchers use one connection. The
// goroutine runs while there are watchers.
type feed struct {
	// follow reads the store until ctx ends, and reports what it finds in the order of the store: a map, ErrNoMap, or why
	// the store did not answer. It may report the same again.
	follow func(ctx context.Context, report func(Entry, error))

	mu       sync.Mutex // guards what follows
	watchers int
	closed   bool
	now      *following // nil without watchers
}

// following is one run of the goroutine.
type following struct {
	cancel context.CancelFunc
	done   chan struct{}

	// Of feed.mu.
	news
	changed chan struct{} // closed when there is other news
}

// news is the latest about a store.
type news struct {
	count   int // of all news
	entry   Entry
	entryAt int // the count at the last answer; 0 for none
	err     error
	errAt   int // the count of the last error
}

// watch is [Store.Watch].
func (f *feed) watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		run := f.join(ctx)
		if run == nil {
			yield(Entry{}, ErrClosed)
			return
		}
		defer f.leave()
		w := watcher{seen: after, back: notBack}
		for ctx.Err() == nil {
			f.mu.Lock()
			latest, changed, closed := run.news, run.changed, f.closed
			f.mu.Unlock()
			if closed {
				yield(Entry{}, ErrClosed)
				return
			}
			if !w.report(ctx, latest, yield) {
				return
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// watcher is the state of one watcher.
type watcher struct {
	seen  int         // the newest version
	m     *shards.Map // of that version; nil while only its number is known
	back  int         // the older version that was reported, noMap, or notBack; seen if another map under that version was
	count int         // of the news
}

const (
	noMap   = -1
	notBack = -2
)

// report yields the news that is new to the watcher, and reports whether to continue.
func (w *watcher) report(ctx context.Context, n news, yield func(Entry, error) bool) bool {
	if n.entryAt > w.count {
		version := n.entry.version()
		switch {
		case n.entry.Map != nil && version > w.seen:
			w.seen, w.m, w.back = version, n.entry.Map, notBack
			if !yield(n.entry, nil) {
				return false
			}
		case version == w.seen && (w.m == nil || same(w.m, n.entry.Map)):
			w.m, w.back = n.entry.Map, notBack
		default:
			back := version
			if n.entry.Map == nil {
				back = noMap
			}
			if w.back != back {
				w.back = back
				if !yield(Entry{}, &WentBackError{Seen: w.seen, Found: version}) {
					return false
				}
			}
		}
	}
	before := w.count
	w.count = n.count
	if n.errAt > before && n.errAt > n.entryAt {
		return ctx.Err() == nil && yield(Entry{}, n.err)
	}
	return true
}

// join starts the goroutine for the first watcher. It returns nil once the feed is closed.
func (f *feed) join(ctx context.Context) *following {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.watchers++
	if f.now == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // other watchers may stay longer
		run := &following{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
		f.now = run
		go func() {
			defer close(run.done)
			f.follow(ctx, func(e Entry, err error) {
				if ctx.Err() == nil {
					f.report(run, e, err)
				}
			})
		}()
	}
	return f.now
}

// leave ends the goroutine when the last watcher leaves, and waits for it.
func (f *feed) leave() {
	f.mu.Lock()
	f.watchers--
	var last *following
	if f.watchers == 0 {
		last, f.now = f.now, nil
	}
	f.mu.Unlock()
	last.end()
}

// close ends all watchers and the goroutine.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	run := f.now
	if run != nil {
		run.wake()
	}
	f.mu.Unlock()
	run.end()
}

func (f *feed) report(run *following, e Entry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := err == nil || errors.Is(err, ErrNoMap)
	if answered && run.entryAt > run.errAt && e.version() == run.entry.version() && same(e.Map, run.entry.Map) {
		return // no news
	}
	run.count++
	if answered {
		run.entry, run.entryAt = e, run.count
	} else {
		run.err, run.errAt = err, run.count
	}
	run.wake()
}

// wake wakes the watchers. The caller holds feed.mu.
func (r *following) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *following) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}
