package mapstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// fileStore keeps the map in kiloshard.yaml itself, and its history in a directory beside it, kiloshard.yaml.history.
//
// An edit by hand makes the next version: one more than the newest in the history, or what the field version says if that
// is more. Swap and Watch write it into the history, under the lock, before anything follows it. Only Swap writes the file.
type fileStore struct {
	path string
	docs documents
	opts Options
	feed feed

	closed atomic.Bool
}

// byHand is By of a change that was found in the file.
const byHand = "hand"

// openFile opens a store in a file. The defaults of opts are filled in, but for Poll.
func openFile(cfg shards.Config, opts Options) (Store, error) {
	if opts.Path == "" {
		return nil, errors.New("store file: its path is missing")
	}
	path, err := filepath.Abs(opts.Path)
	if err != nil {
		return nil, fmt.Errorf("path of %s: %w", opts.Path, err)
	}
	s := &fileStore{path: path, docs: opts.documents(cfg), opts: opts}
	s.feed.follow = s.follow
	return s, nil
}

// Format prints the path for every verb, so that no DSN is printed.
func (s *fileStore) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, "store file "+s.path)
}

// Load implements [Store].
func (s *fileStore) Load(ctx context.Context) (Entry, error) {
	if err := s.ready(ctx); err != nil {
		return Entry{}, err
	}
	r, err := s.read()
	if err != nil {
		return Entry{}, err
	}
	e, _, err := s.entry(r, s.docs)
	return e, err
}

// Swap implements [Store].
func (s *fileStore) Swap(ctx context.Context, from int, next Change) (Entry, error) {
	if err := s.ready(ctx); err != nil {
		return Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	h, err := s.lockHistory(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer h.unlock()
	for ctx.Err() == nil {
		e, err := s.swapOnce(h, from, next)
		if !errors.Is(err, errSaved) {
			return e, err
		}
	}
	return Entry{}, ctx.Err()
}

// present reads what a change follows: the zero Entry if there is no map yet.
func (s *fileStore) present() (r reading, now Entry, written shards.Config, err error) {
	if r, err = s.read(); err != nil {
		return r, now, written, err
	}
	now, written, err = s.entry(r, s.docs.keepUnset())
	if errors.Is(err, ErrNoMap) {
		err = nil
	}
	return r, now, written, err
}

// swapOnce is Swap under the lock. It returns errSaved if somebody saved the file meanwhile and it has done nothing.
func (s *fileStore) swapOnce(h history, from int, next Change) (Entry, error) {
	r, now, written, err := s.present()
	if err != nil {
		return Entry{}, err
	}
	if now.version() != from {
		return Entry{}, &ConflictError{Wanted: from, Found: now.version()}
	}
	made, text, err := s.docs.check(now, next)
	if err != nil {
		return Entry{}, err
	}
	if now.Map != nil {
		text = keepComments(r.text, text, written)
		if !r.recorded && checkPasswords(now.Map.Config()) == nil { // a password leaves the file, and does not enter the history
			if err := h.record(now, r.text); err != nil {
				return Entry{}, err
			}
		}
	}
	made.At = time.Now().UTC()
	if err := h.replace(made, r.text, text); err != nil {
		return Entry{}, err
	}
	return made, nil
}

// History implements [Store].
func (s *fileStore) History(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		docs := s.docs.keepUnset()
		r, err := s.read()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		below := math.MaxInt
		if r.text != nil {
			e, _, err := s.entry(r, docs)
			if !yield(e, err) || err != nil {
				return
			}
			below = e.version()
		}
		versions, err := s.history().versions()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, version := range versions {
			if ctx.Err() != nil {
				yield(Entry{}, ctx.Err())
				return
			}
			if version >= below {
				continue
			}
			e, err := s.history().entry(version, docs)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Watch implements [Store].
func (s *fileStore) Watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return s.feed.watch(ctx, after)
}

// Close implements [Store].
func (s *fileStore) Close() error {
	s.closed.Store(true)
	s.feed.close()
	return nil
}

func (s *fileStore) ready(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// reading is the content of file and history at one moment.
type reading struct {
	target   string // the file, symbolic links followed
	text     []byte // nil when there is no file
	modified time.Time
	newest   int // of the history, -1 for none
	last     record
	recorded bool // text is that of the newest version
}

// read reads file and history without a lock: if the history has changed meanwhile, it reads again.
func (s *fileStore) read() (reading, error) {
	for {
		r := reading{target: s.target()}
		h := s.history()
		before, err := h.newest()
		if err != nil {
			return r, err
		}
		if r.text, r.modified, err = readDocument(r.target); err != nil {
			return r, err
		}
		if before >= 0 {
			if r.last, err = h.read(before); err != nil {
				return r, err
			}
		}
		// A file that was just replaced has a pending record, or its process was killed before it was stored.
		ready, readyErr := h.pending()
		if r.newest, err = h.newest(); err != nil {
			return r, err
		}
		switch {
		case r.newest != before:
			continue
		case r.text == nil:
		case r.newest >= 0 && bytes.Equal(r.last.text, r.text):
			r.recorded = true
		case readyErr == nil && bytes.Equal(ready.text, r.text):
			r.newest, r.last, r.recorded = ready.Version, ready, true
		}
		return r, nil
	}
}

// entry returns the entry of what was read, and the config as it is written. It returns [ErrNoMap] without a file.
func (s *fileStore) entry(r reading, docs documents) (Entry, shards.Config, error) {
	if r.text == nil {
		return Entry{}, shards.Config{}, ErrNoMap
	}
	written, err := docs.config(s.path, r.text)
	if err != nil {
		return Entry{}, written, err
	}
	e := Entry{At: r.modified, By: byHand}
	if r.recorded {
		e = Entry{At: r.last.At, By: r.last.By, Why: r.last.Why}
	}
	if e.Map, err = docs.parse(s.path, r.version(written.Version), r.text); err != nil {
		return Entry{}, written, err
	}
	if r.newest >= 0 && !r.recorded {
		last, err := s.history().entry(r.newest, s.docs.keepUnset())
		if err != nil {
			return Entry{}, written, err
		}
		if err := shards.CheckChange(last.Map, e.Map); err != nil {
			return Entry{}, written, fmt.Errorf("%s was edited by hand, and version %d of it in %s: %w", s.path, r.newest, s.history().dir, err)
		}
	}
	return e, written, nil
}

// version returns the version of what was read; written is the file's field version.
func (r reading) version(written int) int {
	switch {
	case r.recorded:
		return r.newest
	case r.newest >= 0:
		return max(written, r.newest+1)
	}
	return written
}

// target returns the file that the path leads to.
func (s *fileStore) target() string {
	if target, err := filepath.EvalSymlinks(s.path); err == nil {
		return target
	}
	if target, err := os.Readlink(s.path); err == nil { // to a file that does not exist yet
		if filepath.IsAbs(target) {
			return target
		}
		return filepath.Join(filepath.Dir(s.path), target)
	}
	return s.path
}

func (s *fileStore) history() history { return history{dir: s.target() + ".history", file: s.target()} }

// maxDocument is the most that is read of a file; [shards.Parse] refuses a document of that size.
const maxDocument = 1<<20 + 1

// readDocument returns nil for a missing file.
func readDocument(path string) ([]byte, time.Time, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	return readAll(file)
}
