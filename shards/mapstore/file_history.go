package mapstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// history is the directory beside a file with a file for each version: a line that says when, who and why, and the
// document.
type history struct {
	dir    string
	file   string // the document itself
	unlock func() // nil for who only reads
}

// record is a version in the history.
type record struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Why     string    `json:"why"`

	text []byte
}

const (
	recordEnd = ".yaml"
	lockName  = "lock"
	pending   = "pending" // the record of a version that is about to be the file
)

func (h history) path(version int) string {
	return filepath.Join(h.dir, fmt.Sprintf("%06d%s", version, recordEnd))
}

// versions returns the versions in the history, the newest first. One that may not be read counts as none.
func (h history) versions() ([]int, error) {
	names, err := os.ReadDir(h.dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var versions []int
	for _, name := range names {
		digits, ok := strings.CutSuffix(name.Name(), recordEnd)
		if version, err := strconv.ParseUint(digits, 10, 31); ok && err == nil {
			versions = append(versions, int(version))
		}
	}
	slices.SortFunc(versions, func(a, b int) int { return cmp.Compare(b, a) })
	return versions, nil
}

// newest returns the newest version, -1 for none.
func (h history) newest() (int, error) {
	versions, err := h.versions()
	if err != nil || len(versions) == 0 {
		return -1, err
	}
	return versions[0], nil
}

func (h history) read(version int) (record, error) { return readRecord(h.path(version)) }

func (h history) pending() (record, error) { return readRecord(filepath.Join(h.dir, pending)) }

func readRecord(path string) (record, error) {
	var r record
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	data, _, err := readAll(file)
	if err != nil {
		return r, err
	}
	head, text, ok := bytes.Cut(data, []byte("\n"))
	head, isComment := bytes.CutPrefix(head, []byte("# "))
	if !ok || !isComment || json.Unmarshal(head, &r) != nil {
		return r, fmt.Errorf("%s: its first line does not say who changed the map, and when", path)
	}
	r.text = text
	return r, nil
}

func readAll(file *os.File) ([]byte, time.Time, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxDocument+2*MaxNote))
	if data == nil {
		data = []byte{}
	}
	return data, info.ModTime().UTC(), err
}

// entry returns a version.
func (h history) entry(version int, docs documents) (Entry, error) {
	r, err := h.read(version)
	if err != nil {
		return Entry{}, err
	}
	m, err := docs.parse(h.path(version), version, r.text)
	return Entry{Map: m, At: r.At, By: r.By, Why: r.Why}, err
}

// lockHistory makes the directory, waits until nobody else changes the file, and completes what one who was killed left.
func (s *fileStore) lockHistory(ctx context.Context) (history, error) {
	h := s.history()
	if err := os.Mkdir(h.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return h, err
	}
	unlock, err := lockFile(ctx, filepath.Join(h.dir, lockName))
	if err != nil {
		return h, err
	}
	h.unlock = unlock
	if err := h.complete(); err != nil {
		unlock()
		return h, err
	}
	return h, nil
}

// complete records the version of one who was killed between the file and its record, or forgets it.
func (h history) complete() error {
	path := filepath.Join(h.dir, pending)
	r, err := h.pending()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, _, err := readDocument(h.file)
		if err != nil {
			return err
		}
		if bytes.Equal(text, r.text) {
			return h.rename(path, h.path(r.Version))
		}
	}
	return os.Remove(path)
}

// record puts a version that is the file already into the history.
func (h history) record(e Entry, text []byte) error {
	if err := checkPasswords(e.Map.Config()); err != nil {
		return err
	}
	if err := h.prepare(e, text); err != nil {
		return err
	}
	return h.rename(filepath.Join(h.dir, pending), h.path(e.version()))
}

// errSaved says that an editor has saved the file between reading it and replacing it. Nothing was done.
var errSaved = errors.New("an editor has saved the file")

// replace puts a new version in the place of the file, whose text was old, nil for none, and into the history. A process
// that is killed meanwhile has done all or nothing: the record lies ready before the file is there, and complete takes it
// from there. The error is errSaved if the file is not as it was. An editor takes no lock: a save between this look and the
// rename is lost.
func (h history) replace(e Entry, old, text []byte) error {
	if err := h.prepare(e, text); err != nil {
		return err
	}
	now, _, err := readDocument(h.file)
	if err != nil {
		return err
	}
	if (now == nil) != (old == nil) || !bytes.Equal(now, old) {
		return errSaved
	}
	if err := replaceFile(h.file, text, 0); err != nil {
		return err
	}
	if err := h.rename(filepath.Join(h.dir, pending), h.path(e.version())); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil
}

func (h history) prepare(e Entry, text []byte) error {
	head, err := json.Marshal(record{Version: e.version(), At: e.At, By: e.By, Why: e.Why})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(h.dir, pending), slices.Concat([]byte("# "), head, []byte("\n"), text), 0o600)
}

func (h history) rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(h.dir)
}
