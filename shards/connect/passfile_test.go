package connect_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// TestPassfilesThatOthersMayRead are refused in libpq's words, if the password is taken from there.
func TestPassfilesThatOthersMayRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs file modes")
	}
	path := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(path, []byte("*:*:*:*:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dsn  string
		mode os.FileMode
		want bool
	}{
		{"postgres://app@127.0.0.1/app?passfile=" + path, 0o600, true},
		{"postgres://app@127.0.0.1/app?passfile=" + path, 0o640, false},
		{"host=127.0.0.1 user=app passfile='" + path + "'", 0o604, false},
		{"host=127.0.0.1 user=app password=own passfile='" + path + "'", 0o644, true},
	} {
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := connect.ForPool(shards.Host{Name: "pg-a", DSN: test.dsn})
		if (err == nil) != test.want || err != nil && !strings.Contains(err.Error(), "has group or world access; permissions should be u=rw (0600) or less") {
			t.Errorf("%s, mode %o: got %v", test.dsn, test.mode, err)
		}
	}
}
