package mapstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile writes a file that is on the disk when it returns. It replaces one that is there.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// replaceFile puts text in the place of a file: whoever reads it meets the old or the new one, whole. The new one has
// the mode, or the old one's if mode is 0, and the old one's owner where that is allowed. It tells whether the file may
// be replaced in spite of an error.
func replaceFile(path string, text []byte, mode fs.FileMode) (done bool, err error) {
	old, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	switch {
	case mode != 0:
	case err == nil:
		mode = old.Mode().Perm()
	default:
		mode = 0o644
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	temp := file.Name()
	defer func() {
		if !done {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		return false, err
	}
	if old != nil {
		keepOwner(temp, old)
	}
	if err := os.Rename(temp, path); err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// syncDir makes renames in a directory last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
