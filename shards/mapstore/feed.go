package mapstore

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
)

// feed hands what one goroutine learns of a store to all who watch it: a thousand watchers are one connection and one
// question. The goroutine runs while somebody watches.
type feed struct {
	// follow looks at the store until ctx ends, and tells what it finds in the order in which the store had it: a map,
	// ErrNoMap, or why the store did not answer. What it tells again does no harm.
	follow func(ctx context.Context, tell func(Entry, error))

	mu       sync.Mutex // guards what follows
	watchers int
	closed   bool
	now      *following // nil while nobody watches
}

// following is one run of the goroutine.
type following struct {
	cancel context.CancelFunc
	done   chan struct{}

	// Of feed.mu.
	news
	changed chan struct{} // closed when there is other news
}

// news is the last that is known of a store.
type news struct {
	count   int // of all news
	entry   Entry
	entryAt int // the count when the store answered last; 0 for never
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
			if !w.tell(ctx, latest, yield) {
				return
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// watcher is what one watcher knows.
type watcher struct {
	seen  int         // the newest version
	m     *shards.Map // of that version; nil while only its number is known
	back  int         // the older version that it was told of, noMap, or notBack; seen if it was told of another map as that version
	count int         // of the news
}

const (
	noMap   = -1
	notBack = -2
)

// tell yields what of the news is new, and reports whether to go on.
func (w *watcher) tell(ctx context.Context, n news, yield func(Entry, error) bool) bool {
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
			if told := w.back == back; !told {
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
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // others may come who watch for longer
		run := &following{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
		f.now = run
		go func() {
			defer close(run.done)
			f.follow(ctx, func(e Entry, err error) {
				if ctx.Err() == nil {
					f.tell(run, e, err)
				}
			})
		}()
	}
	return f.now
}

// leave ends the goroutine when the last watcher goes, and waits for it.
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

// close makes all who watch leave, and ends the goroutine.
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

func (f *feed) tell(run *following, e Entry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := err == nil || errors.Is(err, ErrNoMap)
	if answered && run.entryAt > run.errAt && e.version() == run.entry.version() && same(e.Map, run.entry.Map) {
		return // nobody is woken for it
	}
	run.count++
	if answered {
		run.entry, run.entryAt = e, run.count
	} else {
		run.err, run.errAt = err, run.count
	}
	run.wake()
}

// wake is called under feed.mu.
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
