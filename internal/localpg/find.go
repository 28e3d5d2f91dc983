package localpg

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

// binaries is a directory with the programs of one Postgres version.
type binaries struct {
	dir   string
	major int
}

func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }

// usualPlaces is where packages and builds put the programs of a Postgres server: a pattern a line, with a comment.
// look.sh reads the same file.
//
//go:embed usual_places.txt
var usualPlaces string

// findBinaries returns the newest Postgres on the machine, or of those in binDir if that is given.
func findBinaries(ctx context.Context, binDir string) (binaries, error) {
	dirs := []string{binDir}
	where := "in " + binDir
	if binDir == "" {
		dirs = candidates()
		where = "on the PATH and in the usual places"
	}
	var best, old binaries
	var broken error
	for _, dir := range dirs {
		major, err := majorVersion(ctx, dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			broken = err
		case major < MinVersion && major > old.major:
			old = binaries{dir, major}
		case major >= MinVersion && major > best.major:
			best = binaries{dir, major}
		}
	}
	switch {
	case ctx.Err() != nil:
		return binaries{}, ctx.Err()
	case best.major != 0:
		return best, nil
	case old.major != 0:
		return binaries{}, fmt.Errorf("the server binaries in %s are of version %d, too old: want %d or later",
			old.dir, old.major, MinVersion)
	case broken != nil:
		return binaries{}, broken
	}
	return binaries{}, fmt.Errorf("no server binaries (looked for postgres and initdb, version %d or later, %s)",
		MinVersion, where)
}

// candidates returns the directories that may have the programs. What the PATH has is followed to where it really is,
// for the other programs lie beside it there, and Postgres finds its files from there.
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

// majorVersion returns the version of the server programs in dir. The error is os.ErrNotExist if they are not there.
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
