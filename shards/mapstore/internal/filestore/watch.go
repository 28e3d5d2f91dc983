package filestore

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
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// settleTime is how long the file must not change before an edit by hand counts: an editor may still be writing it.
const settleTime = 200 * time.Millisecond

// watch is one run of Follow.
type watch struct {
	*Store
	report backend.Report

	last      *backend.Version // the last that was reported, nil for none
	edit      []byte           // found in the file, and not in the history
	since     time.Time        // when edit was found
	lastError string           // the last that was reported
}

// Follow reports the current version until ctx ends: after each notification of a change, and at the poll interval.
func (s *Store) Follow(ctx context.Context, report backend.Report) {
	w := &watch{Store: s, report: report}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "changes of files are not reported, so the store polls",
			slog.Duration("every", s.cfg.Poll), slog.Any("error", err))
		notify = &fsnotify.Watcher{} // its channels are nil
	} else {
		defer notify.Close()
	}
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	for {
		if err == nil {
			for _, path := range []string{s.path, s.target()} {
				_ = notify.Add(filepath.Dir(path)) // adding it again does nothing; if it fails, polling remains
			}
		}
		var soon <-chan time.Time
		if w.look(ctx) {
			soon = time.After(settleTime / 4)
		}
		if !w.wait(ctx, notify, poll.C, soon) {
			return
		}
	}
}

// wait waits until the file may have changed. It returns false if ctx ended.
func (w *watch) wait(ctx context.Context, notify *fsnotify.Watcher, poll, soon <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-poll:
			return true
		case <-soon:
			return true
		case event, ok := <-notify.Events:
			name := filepath.Base(event.Name)
			// Kubernetes replaces all files of a volume at once by a link called ..data.
			if !ok || name == filepath.Base(w.path) || name == filepath.Base(w.target()) || strings.HasPrefix(name, "..") {
				return ok || ctx.Err() == nil
			}
		case err := <-notify.Errors: // such as that events were lost
			w.cfg.Logger.DebugContext(ctx, "some changes of files were not reported", slog.Any("error", err))
			return ctx.Err() == nil
		}
	}
}

// look reads the file and reports it. It returns true if it must read again soon, to see whether an edit has settled.
func (w *watch) look(ctx context.Context) (soon bool) {
	r, err := w.read()
	if err != nil {
		w.fail(err)
		return false
	}
	first := w.last == nil && r.last == nil
	if r.text != nil && (r.recorded || first || w.last != nil && bytes.Equal(w.last.Document, r.text)) {
		w.edit = nil
		w.found(w.version(r, w.cfg.Docs))
		return false
	}
	if w.since.IsZero() || !bytes.Equal(w.edit, r.text) || (w.edit == nil) != (r.text == nil) {
		w.edit, w.since = r.text, time.Now()
		return true
	}
	if time.Since(w.since) < settleTime {
		return true
	}
	if r.text == nil {
		w.found(nil, nil)
		return false
	}
	w.adopt(ctx)
	return false
}

// adopt writes an edit by hand into the history, and reports it.
func (w *watch) adopt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Limit)
	defer cancel()
	err := w.recordEdit(ctx)
	r, readErr := w.read()
	if readErr != nil {
		w.fail(readErr)
		return
	}
	v, versionErr := w.version(r, w.cfg.Docs)
	if err == nil || v == nil || versionErr != nil {
		w.found(v, versionErr)
		return
	}
	if hasPassword := (*shards.FieldError)(nil); errors.As(err, &hasPassword) {
		w.fail(fmt.Errorf("%s was edited by hand: %w", w.path, err))
		return
	}
	if w.last != nil && v.Number <= w.last.Number {
		w.fail(fmt.Errorf("%s was edited by hand, and its history cannot be written "+
			"(to make the edit a version of its own, write version: %d into it, or more): %w", w.path, w.last.Number+1, err))
		return
	}
	w.cfg.Logger.DebugContext(ctx, "an edit by hand is not in the history of the map", slog.Any("error", err))
	w.found(v, nil)
}

// recordEdit records the file as made by hand. If nothing is recorded yet, it first records the version before the edit.
func (w *watch) recordEdit(ctx context.Context) error {
	h, err := w.lockHistory(ctx)
	if err != nil {
		return err
	}
	defer h.unlock()
	r, v, err := w.latest()
	if err != nil || v == nil || r.recorded {
		return err
	}
	if r.last == nil && w.last != nil {
		if w.checkPasswords(w.last.Document) == nil {
			before := *w.last
			before.At, before.By, before.Why = r.modified, "", "as it was found"
			if err := h.record(&before); err != nil {
				return err
			}
		}
		v.Number = max(v.Number, w.last.Number+1)
	}
	if err := w.checkPasswords(v.Document); err != nil {
		return err
	}
	return h.record(v)
}

// found reports the version that was read, nil if there is no file, or why it is no map.
func (w *watch) found(v *backend.Version, err error) {
	if err != nil {
		w.fail(err)
		return
	}
	if v != nil {
		w.last = v
	}
	w.lastError = ""
	w.report(v, nil)
}

// fail reports an error, unless it is the last one again.
func (w *watch) fail(err error) {
	if w.lastError != err.Error() {
		w.lastError = err.Error()
		w.report(nil, err)
	}
}
