package filestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/internal/atomicfile"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// history is the directory beside a file, with a file for each version: a record of one line, and the document.
type history struct {
	dir    string
	file   string // the document itself
	unlock func() // nil without the lock
}

// record is the first line of a version: its number, when it was made, by whom and why.
type record struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Why     string    `json:"why"`
}

const (
	extension   = ".yaml"
	lockName    = "lock"
	pendingName = "pending" // the version that is about to be the file

	none = -1 // instead of the newest version's number
)

func (h history) path(number int) string {
	return filepath.Join(h.dir, fmt.Sprintf("%06d%s", number, extension))
}

func (h history) pendingPath() string { return filepath.Join(h.dir, pendingName) }

// numbers returns the numbers of all versions, newest first. A history that this user may not read counts as empty.
func (h history) numbers() ([]int, error) {
	files, err := os.ReadDir(h.dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, file := range files {
		digits, ok := strings.CutSuffix(file.Name(), extension)
		if number, err := strconv.ParseUint(digits, 10, 31); ok && err == nil {
			numbers = append(numbers, int(number))
		}
	}
	slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
	return numbers, nil
}

// newest returns the number of the newest version, or none.
func (h history) newest() (int, error) {
	numbers, err := h.numbers()
	if err != nil || len(numbers) == 0 {
		return none, err
	}
	return numbers[0], nil
}

// read reads a version, which has the number of its file.
func (h history) read(number int) (*backend.Version, error) {
	v, err := readVersion(h.path(number))
	if err != nil {
		return nil, err
	}
	v.Number = number
	return v, nil
}

func (h history) readPending() (*backend.Version, error) { return readVersion(h.pendingPath()) }

func readVersion(path string) (*backend.Version, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := readAll(file)
	if err != nil {
		return nil, err
	}
	var r record
	line, document, ok := bytes.Cut(text, []byte("\n"))
	line, isComment := bytes.CutPrefix(line, []byte("# "))
	if !ok || !isComment || json.Unmarshal(line, &r) != nil {
		return nil, fmt.Errorf("%s: its first line does not say who changed the map, and when", path)
	}
	return &backend.Version{Number: r.Version, Document: document, At: r.At, By: r.By, Why: r.Why, Name: path}, nil
}

// lockHistory creates the directory, waits for the lock, and completes the change of a process that was killed.
func (s *Store) lockHistory(ctx context.Context) (history, error) {
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

// complete puts the pending version into the history if it is the file, and removes it otherwise.
func (h history) complete() error {
	v, err := h.readPending()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, _, err := readDocument(h.file)
		if err != nil {
			return err
		}
		if bytes.Equal(text, v.Document) {
			return h.keepPending(v.Number)
		}
	}
	return os.Remove(h.pendingPath())
}

// record puts a version that the file already holds into the history.
func (h history) record(v *backend.Version) error {
	if err := h.writePending(v); err != nil {
		return err
	}
	return h.keepPending(v.Number)
}

// errSaved says that an editor saved the file between reading and replacing it. Nothing was changed.
var errSaved = errors.New("an editor has saved the file")

// replace replaces the file, whose text was old, nil for none, and puts the new version into the history. It returns
// errSaved if the file has another text. An editor takes no lock: a save between that check and the rename is lost.
func (h history) replace(v *backend.Version, old []byte) error {
	if err := h.writePending(v); err != nil {
		return err
	}
	now, _, err := readDocument(h.file)
	if err != nil {
		return err
	}
	if (now == nil) != (old == nil) || !bytes.Equal(now, old) {
		return errSaved
	}
	if err := atomicfile.Replace(h.file, v.Document, 0); err != nil {
		return err
	}
	if err := h.keepPending(v.Number); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	return nil
}

func (h history) writePending(v *backend.Version) error {
	line, err := json.Marshal(record{Version: v.Number, At: v.At, By: v.By, Why: v.Why})
	if err != nil {
		return err
	}
	return atomicfile.Write(h.pendingPath(), slices.Concat([]byte("# "), line, []byte("\n"), v.Document), 0o600)
}

// keepPending gives the pending version its place in the history.
func (h history) keepPending(number int) error {
	if err := os.Rename(h.pendingPath(), h.path(number)); err != nil {
		return err
	}
	return atomicfile.SyncDir(h.dir)
}
