// Package binaries finds the programs of Postgres on this machine, and downloads them.
package binaries

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// MinVersion is the oldest major version of Postgres that is used.
const MinVersion = 15

// Dir is a directory with the programs of one Postgres version.
type Dir string

// Program returns the path of a program.
func (d Dir) Program(name string) string { return filepath.Join(string(d), name) }

// usualPlaces lists where packages and builds install the programs of a server: one pattern and a comment a line. look.sh
// reads the same file.
//
//go:embed usual_places.txt
var usualPlaces string

// Find returns the newest Postgres on the machine, or the one in binDir if that is given.
func Find(ctx context.Context, binDir string) (Dir, error) {
	dirs := []string{binDir}
	where := "in " + binDir
	if binDir == "" {
		dirs = candidates()
		where = "on the PATH and in the usual places"
	}
	var best, old struct {
		dir   string
		major int
	}
	var broken error
	for _, dir := range dirs {
		major, err := majorVersion(ctx, dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			broken = err
		case major < MinVersion && major > old.major:
			old.dir, old.major = dir, major
		case major >= MinVersion && major > best.major:
			best.dir, best.major = dir, major
		}
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case best.major != 0:
		return Dir(best.dir), nil
	case old.major != 0:
		return "", fmt.Errorf("the server binaries in %s are of version %d, too old: want %d or later",
			old.dir, old.major, MinVersion)
	case broken != nil:
		return "", broken
	}
	return "", fmt.Errorf("no server binaries (looked for postgres and initdb, version %d or later, %s)",
		MinVersion, where)
}

// candidates returns the directories that may have the programs. It follows links on the PATH: they may lead to a directory
// that has all programs, and Postgres finds its other files from there.
func candidates() []string {
	var dirs []string
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	for line := range strings.Lines(usualPlaces) {
		pattern, _, _ := strings.Cut(line, "#")
		found, _ := filepath.Glob(strings.TrimSpace(pattern)) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	return dirs
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// majorVersion returns the version of the server programs in dir. The error is os.ErrNotExist if one of them is missing.
func majorVersion(ctx context.Context, dir string) (int, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	match := versionText.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("%s: no version in %q", strings.Join(cmd.Args, " "), out)
	}
	return strconv.Atoi(string(match[1]))
}
