package filestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/document"
)

// Config is the config of a [Store]. All fields are required.
type Config struct {
	Path   string
	Docs   *document.Reader
	Poll   time.Duration
	Limit  time.Duration // of the wait for the lock while an edit by hand is recorded
	Logger *slog.Logger
}

// Store keeps the map in a file. It is safe for concurrent use.
type Store struct {
	cfg   Config
	path  string
	unset *document.Reader // keeps unset variables
}

// byHand is By of a version that was found in the file.
const byHand = "hand"

// Open returns the store of a file, which need not exist.
func Open(cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("store file: its path is missing")
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("path of %s: %w", cfg.Path, err)
	}
	return &Store{cfg: cfg, path: path, unset: cfg.Docs.KeepUnset()}, nil
}

// String names the store.
func (s *Store) String() string { return "file " + s.path }

// Close does nothing: the store holds nothing between two calls.
func (s *Store) Close() error { return nil }

// Load returns the current version, nil if there is no file.
func (s *Store) Load(context.Context) (*backend.Version, error) {
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	return s.version(r, s.cfg.Docs)
}

// Swap makes the version that next proposes the current one, if that has number from.
func (s *Store) Swap(ctx context.Context, from int, next backend.Propose) (*backend.Version, error) {
	h, err := s.lockHistory(ctx)
	if err != nil {
		return nil, err
	}
	defer h.unlock()
	for ctx.Err() == nil {
		v, err := s.swapOnce(h, from, next)
		if !errors.Is(err, errSaved) {
			return v, err
		}
	}
	return nil, ctx.Err()
}

// swapOnce is Swap under the lock. If an editor saved the file in that time, it changes nothing and returns errSaved.
func (s *Store) swapOnce(h history, from int, next backend.Propose) (*backend.Version, error) {
	r, now, err := s.latest()
	if err != nil {
		return nil, err
	}
	if found := backend.NumberOf(now); found != from {
		return nil, &backend.ConflictError{Found: found}
	}
	v, err := next(now)
	if err != nil {
		return nil, err
	}
	if now != nil {
		v.Document = keepComments(r.text, v.Document)
		// A password that leaves the file does not enter the history.
		if !r.recorded && s.checkPasswords(r.text) == nil {
			if err := h.record(now); err != nil {
				return nil, err
			}
		}
	}
	v.At = time.Now().UTC()
	if err := h.replace(v, r.text); err != nil {
		return nil, err
	}
	return v, nil
}

// latest returns the version that a change follows, nil if there is no file.
func (s *Store) latest() (reading, *backend.Version, error) {
	r, err := s.read()
	if err != nil {
		return r, nil, err
	}
	now, err := s.version(r, s.unset)
	return r, now, err
}

// Check returns the error that Swap would return for next, and checks that the files can be written.
func (s *Store) Check(ctx context.Context, next backend.Propose) error {
	h, err := s.lockHistory(ctx)
	if err != nil {
		return err
	}
	defer h.unlock()
	_, now, err := s.latest()
	if err != nil {
		return err
	}
	if _, err := next(now); err != nil {
		return err
	}
	return errors.Join(checkWritable(h.dir), checkWritable(filepath.Dir(h.file)))
}

// checkWritable returns an error if no file can be created in a directory.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".kiloshard-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// pageSize is the most versions that Page returns from the history.
const pageSize = 32

// Page returns some versions below a number, newest first, and none at the end. Below [math.MaxInt] it starts with the
// current version. It returns the versions before an error, too.
func (s *Store) Page(_ context.Context, below int) ([]*backend.Version, error) {
	var page []*backend.Version
	if below == math.MaxInt {
		_, now, err := s.latest()
		if err != nil {
			return nil, err
		}
		if now != nil {
			page, below = append(page, now), now.Number
		}
	}
	h := s.history()
	numbers, err := h.numbers()
	if err != nil {
		return page, err
	}
	for _, number := range numbers {
		if number >= below {
			continue
		}
		v, err := h.read(number)
		if err != nil {
			return page, err
		}
		if page = append(page, v); len(page) >= pageSize {
			break
		}
	}
	return page, nil
}

// checkPasswords returns an error for a document that holds a password.
func (s *Store) checkPasswords(text []byte) error {
	c, err := s.unset.Config(s.path, text)
	if err != nil {
		return err
	}
	return document.CheckPasswords(c)
}

// version returns the version that was read, nil if there is no file. A document that is not in the history was edited
// by hand: docs must read it as a map, which may follow the last one in the history.
func (s *Store) version(r reading, docs *document.Reader) (*backend.Version, error) {
	if r.text == nil {
		return nil, nil
	}
	if r.recorded {
		v := *r.last
		v.Name = s.path
		return &v, nil
	}
	c, err := docs.Config(s.path, r.text)
	if err != nil {
		return nil, err
	}
	v := &backend.Version{Number: c.Version, Document: r.text, At: r.modified, By: byHand, Name: s.path}
	if r.last != nil {
		v.Number = max(c.Version, r.last.Number+1)
	}
	m, err := docs.Map(s.path, v.Number, r.text)
	if err != nil || r.last == nil {
		return v, err
	}
	last, err := s.unset.Map(r.last.Name, r.last.Number, r.last.Document)
	if err != nil {
		return nil, err
	}
	if err := shards.CheckChange(last, m); err != nil {
		return nil, fmt.Errorf("%s was edited by hand, and version %d of it in %s: %w", s.path, r.last.Number, s.history().dir, err)
	}
	return v, nil
}
