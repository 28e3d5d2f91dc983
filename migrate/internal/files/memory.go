package files

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// inMemory returns a copy of all SQL files in memory. So every shard gets the same files, even if one changes during the
// run, and rendering for a shard reads no disk. The copy is a zip archive, since that is an fs.FS with directories.
//
// tern refuses all files if one has no SQL in its up part, so inMemory replaces the text of such a file. The replacement
// never runs. unwritten holds the names of these files.
func inMemory(files fs.FS) (_ fs.FS, unwritten map[string]bool, err error) {
	unwritten = map[string]bool{}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".sql" {
			return err
		}
		if err := checkFile(files, name); err != nil {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if namePattern.MatchString(name) && isUnwritten(body) {
			unwritten[name], body = true, []byte("select 1")
		}
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	})
	if err == nil {
		err = archive.Close()
	}
	if file := (*fileerror.Error)(nil); errors.As(err, &file) {
		return nil, nil, file // it names the file
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the migrations directory: %w", err)
	}
	reader, err := zip.NewReader(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
	return reader, unwritten, err
}

// largest is how many bytes a file may have: it is kept in memory, and sent to each shard as one message.
const largest = 64 << 20

// checkFile returns a [fileerror.Error] unless name is a regular file of at most [largest] bytes. A named pipe would block its reader.
func checkFile(files fs.FS, name string) error {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return &fileerror.Error{File: name, Err: fmt.Errorf("%w: expected a file in the directory, or a link to one", err)}
	case !info.Mode().IsRegular():
		return &fileerror.Error{File: name, Err: fmt.Errorf("it is no regular file (%s): expected one, or a link to one", info.Mode().Type())}
	case info.Size() > largest:
		return &fileerror.Error{File: name, Err: fmt.Errorf("it has %d bytes: expected at most %d", info.Size(), int64(largest))}
	}
	return nil
}

// isUnwritten reports whether the up part has no SQL by tern's rule: all its lines are empty or comments.
func isUnwritten(body []byte) bool {
	upPart, _, _ := strings.Cut(string(body), upDownSeparator)
	for line := range strings.SplitSeq(upPart, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return false
		}
	}
	return true
}
