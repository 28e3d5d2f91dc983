package localpg_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// serveBuild serves a jar and its checksum at whatever path.
func serveBuild(jar []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			fmt.Fprintf(w, "%x", sha256.Sum256(jar))
			return
		}
		_, _ = w.Write(jar)
	})
}

// buildArchive makes of the Postgres on this machine what a downloaded build is: a zip with a .txz in it that has bin,
// lib and share. Postgres finds its files from where its program is if they lie as they did where it was built for; so
// they keep their places relative to each other, and bin is a link if it has another name there.
func buildArchive(t *testing.T) []byte {
	t.Helper()
	server := start(t, localpg.Config{Source: localpg.Local})
	bin := dirOf(t, server, "BINDIR")
	dirs := []string{bin, dirOf(t, server, "SHAREDIR"), dirOf(t, server, "PKGLIBDIR")}
	root := bin
	for _, dir := range dirs {
		for !strings.HasPrefix(dir, root+"/") {
			root = filepath.Dir(root)
		}
	}

	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, dir := range dirs {
		noError(t, pack(w, root, dir))
	}
	if target, _ := filepath.Rel(root, bin); target != "bin" {
		noError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin", Linkname: target, Mode: 0o777}))
	}
	noError(t, w.Close())

	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	f, err := z.CreateHeader(&zip.FileHeader{Name: "postgres.txz", Method: zip.Store})
	noError(t, err)
	_, err = f.Write(storeXZ(files.Bytes()))
	noError(t, errors.Join(err, z.Close()))
	return jar.Bytes()
}

// dirOf returns a directory of the server's installation.
func dirOf(t *testing.T, server *localpg.Server, name string) string {
	t.Helper()
	return ask[string](t, server.DSN("postgres"), "select setting from pg_config where name = '"+name+"'")
}

// pack writes the files of a directory that a server needs.
func pack(w *tar.Writer, root, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && (name == "bitcode" || name == "man" || name == "pgxs"):
			return fs.SkipDir
		case entry.IsDir(), strings.HasPrefix(name, "llvmjit"), filepath.Base(dir) == "bin" && name != "postgres" && name != "initdb":
			return nil
		}
		content, err := os.ReadFile(path) // links are followed
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(info.Mode().Perm()), Size: int64(len(content))}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
}
