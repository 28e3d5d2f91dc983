package migrate

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// inMemory returns a copy of all SQL files, in memory. A run reads them from there, so that every
// shard gets the same, also when somebody changes a file meanwhile, and no disk is read for each
// shard. An archive in memory serves because it is an fs.FS with directories.
//
// Of a migration that is not written yet tern is given another text, for it would refuse all files for it. It is never run.
// The names of such files are returned too.
func inMemory(files fs.FS) (_ fs.FS, unwritten map[string]bool, err error) {
	unwritten = map[string]bool{}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".sql" {
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
	if err != nil {
		return nil, nil, fmt.Errorf("the migrations directory: %w", err)
	}
	reader, err := zip.NewReader(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
	return reader, unwritten, err
}

// isUnwritten reports whether a file has nothing to go up with, as tern tells it: its lines are empty or comments.
func isUnwritten(body []byte) bool {
	upPart, _, _ := strings.Cut(string(body), upDownSeparator)
	for line := range strings.SplitSeq(upPart, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return false
		}
	}
	return true
}
