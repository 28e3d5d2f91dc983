package migrate

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"path"
)

// frozen returns a copy of all SQL files, in memory. A run reads them from there, so that every
// shard gets the same, also when somebody changes a file meanwhile, and no disk is read for each
// shard. An archive in memory serves because it is an fs.FS with directories.
func frozen(files fs.FS) (fs.FS, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".sql" {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
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
		return nil, fmt.Errorf("the migrations directory: %w", err)
	}
	return zip.NewReader(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
}
