//go:build unix

package localpg

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A template is what initdb made, kept in the cache of the user: a copy takes a twentieth of the time of initdb. Each copy
// gets a system identifier and a password of its own. Only the user may enter the directory.
//
// A template is complete, since it gets its name when it is; it may disappear when another build of Postgres is installed
// at the same place. After any error with a template the caller runs initdb.
type template struct {
	dir   string // with the data directory and the password of its superuser
	place string // the beginning of the names of all templates for the same programs
}

// templateFor returns the template for programs and options, which may not exist. It is named after the files of the
// programs, since a package is updated in place.
func templateFor(cfg Config, bin binaries) (template, error) {
	cache, err := cacheDir(cfg)
	if err != nil {
		return template{}, err
	}
	place := filepath.Join(cache, "initdb-"+digest(bin.dir, strings.Join(initdbOptions, " ")))
	build := []string{fmt.Sprint(os.Geteuid())}
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(bin.program(name))
		if err != nil {
			return template{}, err
		}
		build = append(build, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	return template{dir: place + "-" + digest(build...), place: place}, nil
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%x", sum[:8])
}

// copyTo fills a data directory and returns the password of its superuser.
func (t template) copyTo(data string, user identity) (password string, err error) {
	text, err := os.ReadFile(filepath.Join(t.dir, "password"))
	if err != nil {
		return "", err
	}
	if err := copyTree(filepath.Join(t.dir, "data"), data, user); err != nil {
		return "", err
	}
	return string(text), newIdentifier(data)
}

// save keeps a data directory that no server has used as the template, and removes those of other builds.
func (t template) save(data, password string) (err error) {
	if err := os.MkdirAll(filepath.Dir(t.dir), 0o755); err != nil { //nolint:gosec // downloaded builds are beside it, for the server's user
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(t.dir), filepath.Base(t.place)+"-new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }() // it is gone if it was renamed
	if err := os.Mkdir(filepath.Join(work, "data"), 0o700); err != nil {
		return err
	}
	if err := copyTree(data, filepath.Join(work, "data"), identity{}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "password"), []byte(password), 0o600); err != nil {
		return err
	}
	t.removeOthers(work)
	_ = os.RemoveAll(t.dir)                                                        // one that could not be copied
	if err := os.Rename(work, t.dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been quicker
		return err
	}
	return nil
}

// removeOthers removes the templates of other builds of the programs, and what a process that was killed has left.
func (t template) removeOthers(work string) {
	found, _ := filepath.Glob(t.place + "-*") // the pattern is well-formed
	for _, dir := range found {
		info, err := os.Stat(dir)
		unfinished := strings.HasPrefix(dir, t.place+"-new-")
		if err != nil || dir == work || dir == t.dir || unfinished && time.Since(info.ModTime()) < time.Hour {
			continue
		}
		_ = os.RemoveAll(dir) // the next one tries again
	}
}

// copyTree copies the directories and files in from to a directory that exists, and gives them to the user.
func copyTree(from, to string, user identity) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			return user.give(target)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s: expected a file or a directory", path)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return err
		}
		return user.give(target)
	})
}

// newIdentifier gives a cluster that is shut down another system identifier. That is the first field of its control file,
// which ends with a CRC-32C of the fields before it, and stands in the first page of each file of WAL. See
// src/include/catalog/pg_control.h and src/include/access/xlog_internal.h.
func newIdentifier(data string) error {
	path := filepath.Join(data, "global", "pg_control")
	control, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// Where the CRC is depends on the version.
	at := 8
	for ; at+4 <= len(control); at += 4 {
		if crc32.Checksum(control[:at], castagnoli) == binary.NativeEndian.Uint32(control[at:]) {
			break
		}
	}
	if at+4 > len(control) {
		return fmt.Errorf("%s: no checksum found", path)
	}
	var identifier [8]byte
	_, _ = rand.Read(identifier[:]) // it never fails
	identifier[7] &= 0x7f           // tools print it as a signed number on some versions
	old := [8]byte(control)
	copy(control, identifier[:])
	binary.NativeEndian.PutUint32(control[at:], crc32.Checksum(control[:at], castagnoli))

	const inPage = 24 // xlp_sysid of XLogLongPageHeaderData
	segments, err := filepath.Glob(filepath.Join(data, "pg_wal", strings.Repeat("[0-9A-F]", 24)))
	if err != nil || len(segments) == 0 {
		return errors.Join(err, fmt.Errorf("%s: no files of WAL", data))
	}
	for _, segment := range segments {
		if err := replaceAt(segment, inPage, old[:], identifier[:]); err != nil {
			return err
		}
	}
	return os.WriteFile(path, control, 0o600)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// replaceAt replaces bytes of a file if they are the expected ones.
func replaceAt(path string, offset int64, old, replacement []byte) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found := make([]byte, len(old))
	if _, err := f.ReadAt(found, offset); err != nil {
		return err
	}
	if string(found) != string(old) {
		return fmt.Errorf("%s: expected the system identifier at byte %d", path, offset)
	}
	_, err = f.WriteAt(replacement, offset)
	return err
}
