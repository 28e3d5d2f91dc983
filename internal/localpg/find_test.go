//go:build unix

package localpg_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// programs makes a directory with programs that say that they are of a version.
func programs(t *testing.T, version string, names ...string) string {
	t.Helper()
	dir := publicDir(t)
	for _, name := range names {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		writeProgram(t, filepath.Join(dir, name), []byte(script))
	}
	t.Cleanup(func() {
		for _, name := range names {
			noError(t, os.Remove(filepath.Join(dir, name)))
		}
	})
	return dir
}

func TestBinariesOfNoUse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, version string
		programs      []string
		want          string
	}{
		{"too old", "14.9", []string{"postgres", "initdb"}, "are of version 14, too old: want 15 or later"},
		{"client only", "17.1", []string{"psql", "initdb"}, "no server binaries (looked for postgres and initdb, version 15 or later, in "},
		{"no version", "unknown", []string{"postgres", "initdb"}, `--version: no version in "postgres (PostgreSQL) unknown\n"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := programs(t, test.version, test.programs...)
			_, err := localpg.Start(t.Context(), localpg.Config{Source: localpg.Local, BinDir: dir})
			equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), true)
			equal(t, test.want+" in "+err.Error(), strings.Contains(err.Error(), test.want), true)
			equal(t, "names the directory", strings.Contains(err.Error(), dir), true)
		})
	}
}
