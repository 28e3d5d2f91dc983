package mapstore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errSaved says that the file was saved between reading it and replacing it. Nothing was done.
var errSaved = errors.New("the file was saved meanwhile")

// replacement is a text that replaces a file, made from the file's old text. An editor takes no lock and may save the file at
// any moment. So the two files are exchanged, in one step of the file system, and the displaced one is read afterwards: if
// it is not the old text, somebody saved it, and it is put back as the version after the new one.
type replacement struct {
	path string
	temp string // beside it
	text []byte
}

// exchange replaces the file. It returns errSaved if the file was not as expected, on a system that cannot exchange files, or
// if there was none before. If done, the file has changed in spite of an error.
func (r *replacement) exchange(old []byte) (done bool, err error) {
	if r.temp, err = besideFile(r.path, r.text, 0); err != nil {
		return false, err
	}
	switch {
	case old == nil:
		err = r.link()
	default:
		err = exchangeFiles(r.temp, r.path)
		if errors.Is(err, errors.ErrUnsupported) {
			err = r.rename(old)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		err = errSaved
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(r.temp))
	}
	return true, syncDir(filepath.Dir(r.path))
}

// link makes the file, which must not exist.
func (r *replacement) link() error {
	if err := os.Link(r.temp, r.path); err != nil {
		return err
	}
	return os.Remove(r.temp)
}

// rename replaces the file if it has not changed. A save between the check and the rename is lost.
func (r *replacement) rename(old []byte) error {
	text, _, err := readDocument(r.path)
	if err == nil && !bytes.Equal(text, old) {
		err = errSaved
	}
	if err == nil {
		err = os.Rename(r.temp, r.path)
	}
	return err
}

// settle puts back a text that was saved before the exchange, or else removes the displaced file. A text that is saved
// meanwhile stays.
func (r *replacement) settle(old []byte) error {
	placed := r.text
	for expected := old; ; {
		displaced, _, err := readDocument(r.temp)
		switch {
		case err != nil || displaced == nil: // it was renamed, not exchanged
			return err
		case bytes.Equal(displaced, expected):
			return os.Remove(r.temp)
		}
		if err := exchangeFiles(r.temp, r.path); err != nil {
			return err
		}
		expected, placed = placed, displaced
	}
}
