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
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	bin := dirOf(t, "--bindir")
	dirs := []string{bin, dirOf(t, "--sharedir"), dirOf(t, "--pkglibdir")}
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

// dirOf asks pg_config, of the same version as the server programs, for a directory.
func dirOf(t *testing.T, which string) string {
	t.Helper()
	path, err := osexec.LookPath("postgres")
	noError(t, err)
	path, err = filepath.EvalSymlinks(path)
	noError(t, err)
	out, err := osexec.Command(filepath.Join(filepath.Dir(path), "pg_config"), which).Output()
	noError(t, err)
	return strings.TrimSpace(string(out))
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
