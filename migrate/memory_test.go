//go:build unix

package migrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// What lies in a directory of migrations and is none is named, and not read.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.sql")
	if err := os.WriteFile(secret, []byte("select 'hunter2'"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		make func(path string) error
		want string // empty for a file that is read
	}{
		{"a named pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "it is no regular file (p---------)"},
		{"a link out", func(path string) error { return os.Symlink(secret, path) }, "escapes from parent"},
		{"a link to a device", func(path string) error { return os.Symlink("/dev/zero", path) }, "escapes from parent"},
		{"too large", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 65<<20))
		}, "it has 68157440 bytes: expected at most 67108864"},
		{"a link inside", func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Mkdir(filepath.Join(dir, "..data"), 0o700), os.WriteFile(filepath.Join(dir, "..data", "x"), []byte("select 1"), 0o600), os.Symlink("..data/x", path))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := test.make(filepath.Join(dir, "001_users.sql")); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			_, err = migrate.Status(t.Context(), migrate.Config{Map: m, Files: root.FS()})
			var file *migrate.FileError
			if is := errors.As(err, &file); is != (test.want != "") || is && (!strings.HasPrefix(err.Error(), "migration 001_users.sql: ") || !strings.Contains(err.Error(), test.want) || file.File != "001_users.sql") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
