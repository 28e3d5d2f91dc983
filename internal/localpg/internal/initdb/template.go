//go:build unix

package initdb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/binaries"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
)

// A template is the data directory that initdb made, in the user's cache: copying it takes a twentieth of the time of initdb.
// Each copy gets its own system identifier and password. Only the user can enter the template's directory.
//
// A template gets its name when it is complete. It may disappear when another build of Postgres is installed in the same
// directory. After any error with a template the caller runs initdb.
type template struct {
	dir    string // contains the data directory and a file with the password of its superuser
	prefix string // of the paths of all templates of the same programs and options
}

// templateOf returns the template of programs and options, which may not exist. Its name depends on the size and the time of
// the programs, since a package is updated in place.
func templateOf(bin binaries.Dir, options []string, cacheDir string) (template, error) {
	cache, err := binaries.CacheDir(cacheDir)
	if err != nil {
		return template{}, err
	}
	prefix := filepath.Join(cache, "initdb-"+digest(string(bin), strings.Join(options, " ")))
	build := []string{fmt.Sprint(os.Geteuid())}
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(bin.Program(name))
		if err != nil {
			return template{}, err
		}
		build = append(build, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	return template{dir: prefix + "-" + digest(build...), prefix: prefix}, nil
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%x", sum[:8])
}

// copyTo fills a data directory and returns the password of its superuser.
func (t template) copyTo(data string, user process.User) (password string, err error) {
	text, err := os.ReadFile(filepath.Join(t.dir, "password"))
	if err != nil {
		return "", err
	}
	if err := copyTree(filepath.Join(t.dir, "data"), data, user); err != nil {
		return "", err
	}
	return string(text), newIdentifier(data)
}

// save copies a data directory that no server has used to the template, and removes the templates of other builds.
func (t template) save(data, password string) (err error) {
	if err := os.MkdirAll(filepath.Dir(t.dir), 0o755); err != nil { //nolint:gosec // downloaded builds are beside it, for the server's user
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(t.dir), filepath.Base(t.prefix)+"-new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }() // unless it was renamed
	if err := os.Mkdir(filepath.Join(work, "data"), 0o700); err != nil {
		return err
	}
	if err := copyTree(data, filepath.Join(work, "data"), process.User{}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "password"), []byte(password), 0o600); err != nil {
		return err
	}
	t.removeOthers(work)
	_ = os.RemoveAll(t.dir)                                                        // a template that could not be copied
	if err := os.Rename(work, t.dir); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been quicker
		return err
	}
	return nil
}

// removeOthers removes the templates of other builds of the programs, and what killed processes have left.
func (t template) removeOthers(work string) {
	found, _ := filepath.Glob(t.prefix + "-*") // the pattern is well-formed
	for _, dir := range found {
		info, err := os.Stat(dir)
		unfinished := strings.HasPrefix(dir, t.prefix+"-new-")
		if err != nil || dir == work || dir == t.dir || unfinished && time.Since(info.ModTime()) < time.Hour {
			continue
		}
		_ = os.RemoveAll(dir) // the next process retries
	}
}

// copyTree copies the directories and files in from to an existing directory. The user becomes their owner.
func copyTree(from, to string, user process.User) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			return user.Give(target)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s: expected a file or a directory", path)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return user.WriteFile(target, content)
	})
}
