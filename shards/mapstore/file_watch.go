package mapstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/kiloshard/kiloshard/shards"
)

// settle is how long the file must not change before an edit by hand counts: an editor may still be writing it.
const settle = 200 * time.Millisecond

// fileWatch is one run of following a file.
type fileWatch struct {
	*fileStore
	report func(Entry, error)

	last     Entry     // the last that was reported; no Map for none
	text     []byte    // of last
	edit     []byte    // found in the file, and not in the history
	since    time.Time // when it was found
	reported string    // the last error
}

// follow reports the file after each notification of a change, and at the poll interval.
func (s *fileStore) follow(ctx context.Context, report func(Entry, error)) {
	w := &fileWatch{fileStore: s, report: report}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "changes of files are not reported, so the store polls", slog.Duration("every", s.opts.Poll), slog.Any("error", err))
		notify = &fsnotify.Watcher{} // its channels are nil
	} else {
		defer notify.Close()
	}
	poll := time.NewTicker(s.opts.Poll)
	defer poll.Stop()
	for {
		if err == nil {
			for _, path := range []string{s.path, s.target()} {
				_ = notify.Add(filepath.Dir(path)) // adding it again does nothing; if it fails, polling remains
			}
		}
		again := time.NewTimer(time.Hour)
		if w.look(ctx) {
			again.Reset(settle / 4)
		}
		if !w.wait(ctx, notify, poll.C, again.C) {
			again.Stop()
			return
		}
		again.Stop()
	}
}

// wait returns when it is time to look, false if ctx ended.
func (w *fileWatch) wait(ctx context.Context, notify *fsnotify.Watcher, poll, again <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-poll:
			return true
		case <-again:
			return true
		case event, ok := <-notify.Events:
			name := filepath.Base(event.Name)
			// Kubernetes replaces all files of a volume at once by a link called ..data.
			if !ok || name == filepath.Base(w.path) || name == filepath.Base(w.target()) || strings.HasPrefix(name, "..") {
				return ok || ctx.Err() == nil
			}
		case err := <-notify.Errors: // such as that events were lost
			w.opts.Logger.DebugContext(ctx, "some changes of files were not reported", slog.Any("error", err))
			return ctx.Err() == nil
		}
	}
}

// look reads the file, and reports whether to read it again soon.
func (w *fileWatch) look(ctx context.Context) (soon bool) {
	r, err := w.read()
	if err != nil {
		w.fail(err)
		return false
	}
	first := w.text == nil && r.newest < 0
	if r.text != nil && (r.recorded || first || bytes.Equal(w.text, r.text)) {
		w.edit = nil
		e, _, err := w.entry(r, w.docs)
		w.found(r, e, err)
		return false
	}
	if w.since.IsZero() || !bytes.Equal(w.edit, r.text) || (w.edit == nil) != (r.text == nil) {
		w.edit, w.since = r.text, time.Now()
		return true
	}
	if time.Since(w.since) < settle {
		return true
	}
	if r.text == nil {
		w.reported = ""
		w.report(Entry{}, ErrNoMap)
		return false
	}
	w.adopt(ctx)
	return false
}

// adopt writes an edit by hand into the history, and reports it.
func (w *fileWatch) adopt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Limit)
	defer cancel()
	err := w.recordEdit(ctx)
	r, readErr := w.read()
	if readErr != nil {
		w.fail(readErr)
		return
	}
	e, _, entryErr := w.entry(r, w.docs)
	if refused := (*shards.FieldError)(nil); entryErr == nil && errors.As(err, &refused) { // it has a password in it
		w.fail(fmt.Errorf("%s was edited by hand: %w", w.path, err))
		return
	}
	if err != nil && entryErr == nil {
		if again := w.last.version() + 1; w.text != nil && e.version() < again {
			w.fail(fmt.Errorf("%s was edited by hand, and its history cannot be written "+
				"(to make the edit a version of its own, write version: %d into it, or more): %w", w.path, again, err))
			return
		}
		w.opts.Logger.DebugContext(ctx, "an edit by hand is not in the history of the map", slog.Any("error", err))
	}
	w.found(r, e, entryErr)
}

// recordEdit records the file as made by hand, after the text that was there before if nothing is recorded.
func (w *fileWatch) recordEdit(ctx context.Context) error {
	h, err := w.lockHistory(ctx)
	if err != nil {
		return err
	}
	defer h.unlock()
	r, err := w.read()
	if err != nil {
		return err
	}
	docs := w.docs.keepUnset()
	e, _, err := w.entry(r, docs)
	if err != nil || r.recorded {
		return err
	}
	if r.newest < 0 && w.text != nil {
		before, err := docs.parse(w.path, w.last.version(), w.text)
		if err == nil && checkPasswords(before.Config()) == nil {
			err = h.record(Entry{Map: before, At: r.modified, Why: "as it was found"}, w.text)
		}
		if err != nil {
			return err
		}
		if e.Map, err = docs.parse(w.path, max(e.version(), w.last.version()+1), r.text); err != nil {
			return err
		}
	}
	return h.record(e, r.text)
}

// found reports the entry of what was read.
func (w *fileWatch) found(r reading, e Entry, err error) {
	if err != nil {
		w.fail(err)
		return
	}
	w.last, w.text, w.reported = e, r.text, ""
	w.report(e, nil)
}

// fail reports an error, unless it is the last one again.
func (w *fileWatch) fail(err error) {
	if w.reported != err.Error() {
		w.reported = err.Error()
		w.report(Entry{}, err)
	}
}
