package mapstore

import (
	"bytes"
	"context"
	"iter"
	"sync"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// feed passes what one goroutine learns about a store to all watchers, so that a thousand watchers use one connection.
// The goroutine runs while there are watchers.
type feed struct {
	follow func(ctx context.Context, report backend.Report)
	entry  func(*backend.Version) (Entry, error)

	mu       sync.Mutex // guards what follows
	watchers int
	closed   bool
	run      *run // nil without watchers
}

// run is one run of the goroutine.
type run struct {
	cancel context.CancelFunc
	done   chan struct{}

	// Of the goroutine itself.
	answered  bool             // its last news was an answer, not an error
	last, bad *backend.Version // the last one that was reported, and the last one that was not a map

	// Guarded by feed.mu.
	news
	changed chan struct{} // closed when there is other news
}

// news is the latest about a store.
type news struct {
	count   int   // of all news
	entry   Entry // no Map for an empty store
	entryAt int   // the count at the last answer; 0 for none
	err     error
	errAt   int // the count at the last error; 0 for none
}

// watch is [Store.Watch].
func (f *feed) watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := f.join(ctx)
		if r == nil {
			yield(Entry{}, ErrClosed)
			return
		}
		defer f.leave()
		w := watcher{seen: after, back: notBack}
		for ctx.Err() == nil {
			f.mu.Lock()
			latest, changed, closed := r.news, r.changed, f.closed
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

// join starts the goroutine for the first watcher. It returns nil once the feed is closed.
func (f *feed) join(ctx context.Context) *run {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.watchers++
	if f.run == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // other watchers may stay longer
		r := &run{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
		f.run = r
		go func() {
			defer close(r.done)
			f.follow(ctx, func(v *backend.Version, err error) {
				if ctx.Err() == nil {
					f.report(r, v, err)
				}
			})
		}()
	}
	return f.run
}

// leave ends the goroutine when the last watcher leaves, and waits for it.
func (f *feed) leave() {
	f.mu.Lock()
	f.watchers--
	var last *run
	if f.watchers == 0 {
		last, f.run = f.run, nil
	}
	f.mu.Unlock()
	last.end()
}

// close ends all watchers and the goroutine.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	r := f.run
	if r != nil {
		r.wake()
	}
	f.mu.Unlock()
	r.end()
}

// report makes news of what the goroutine learned, unless the watchers know it.
func (f *feed) report(r *run, v *backend.Version, err error) {
	if err == nil && r.answered && same(v, r.last) {
		return
	}
	var e Entry
	if err == nil && v != nil {
		if e, err = f.entry(v); err != nil {
			if same(v, r.bad) {
				return
			}
			r.bad = v
		}
	}
	if r.answered = err == nil; r.answered {
		r.last, r.bad = v, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.count++
	if err != nil {
		r.err, r.errAt = err, r.count
	} else {
		r.entry, r.entryAt = e, r.count
	}
	r.wake()
}

// same reports whether two versions have the same number and document, or are both nil.
func same(a, b *backend.Version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Number == b.Number && bytes.Equal(a.Document, b.Document)
}

// wake wakes the watchers. The caller holds feed.mu.
func (r *run) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// end ends the goroutine and waits for it. It does nothing for nil.
func (r *run) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}
