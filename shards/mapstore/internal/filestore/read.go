package filestore

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// reading is the content of file and history at one time.
type reading struct {
	text     []byte // nil if there is no file
	modified time.Time
	last     *backend.Version // the newest in the history, nil for none
	recorded bool             // text is that of last
}

// read reads file and history without a lock. If the history changed during the read, it reads again.
func (s *Store) read() (reading, error) {
	for {
		var r reading
		h := s.history()
		before, err := h.newest()
		if err != nil {
			return r, err
		}
		if r.text, r.modified, err = readDocument(h.file); err != nil {
			return r, err
		}
		if before != none {
			if r.last, err = h.read(before); err != nil {
				return r, err
			}
		}
		// Between replacing the file and completing its record, and after a kill there, the record is pending.
		pending, pendingErr := h.readPending()
		after, err := h.newest()
		if err != nil {
			return r, err
		}
		switch {
		case after != before:
			continue
		case r.text == nil:
		case r.last != nil && bytes.Equal(r.last.Document, r.text):
			r.recorded = true
		case pendingErr == nil && bytes.Equal(pending.Document, r.text):
			r.last, r.recorded = pending, true
		}
		return r, nil
	}
}

// target returns the file that the path leads to.
func (s *Store) target() string {
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

func (s *Store) history() history {
	target := s.target()
	return history{dir: target + ".history", file: target}
}

// readDocument returns the text of a file and when it changed, nil if there is no file.
func readDocument(path string) ([]byte, time.Time, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	text, err := readAll(file)
	return text, info.ModTime().UTC(), err
}

// maxFile is the most that is read of a file. [shards.Parse] refuses a document above 1 MiB; the first line of a record
// takes the rest.
const maxFile = 1<<20 + 1<<16

// readAll never returns nil without an error.
func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}
