package mapstore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errSaved says that somebody saved the file between a reading and the change that was made from it. Nothing was done.
var errSaved = errors.New("the file was saved meanwhile")

// replacement is a text on its way into the place of a file, whose old text it was made from. An editor knows no lock
// and may save the file at any moment. So the two are exchanged, in one step of the file system, and what was displaced
// is looked at afterwards: if it is not the old text, it is what somebody saved, and is put back behind the new one.
type replacement struct {
	path string
	temp string // beside it
	text []byte
}

// exchange puts the text into the file's place. It returns errSaved where the system cannot exchange files, or there was
// none before, and the file is not as it was. If done, the file has changed in spite of an error.
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

// link makes the file, which must not be there.
func (r *replacement) link() error {
	if err := os.Link(r.temp, r.path); err != nil {
		return err
	}
	return os.Remove(r.temp)
}

// rename replaces the file if it is as it was. A save in the moment between the two is lost.
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

// settle puts back what somebody saved before the exchange, and removes what is left of it otherwise. What is saved
// while it does so stays.
func (r *replacement) settle(old []byte) error {
	placed := r.text
	for expected := old; ; {
		displaced, _, err := readDocument(r.temp)
		switch {
		case err != nil || displaced == nil: // it was not exchanged but renamed
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
