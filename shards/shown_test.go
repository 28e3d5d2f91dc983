package shards_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every DSN that users read, in documents, comments, help and the config that init writes, has verified TLS, unless it is
// for this machine.
func TestShownDSNsHaveTLS(t *testing.T) {
	t.Parallel()
	dsn := regexp.MustCompile("postgres(?:ql)?://[A-Za-z0-9$][^\\s\"'`)]*")
	found := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || name == "bench" && path == filepath.Join("..", "bench") || name != ".." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" && (filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go")) {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, shown := range dsn.FindAllString(string(text), -1) {
			if found++; !strings.Contains(shown, "sslmode=verify-full") && !strings.Contains(shown, "@127.0.0.1") && !strings.Contains(shown, "@localhost") {
				t.Errorf("%s: %s has no sslmode=verify-full", path, shown)
			}
		}
		return err
	})
	if err != nil || found < 5 {
		t.Errorf("%d DSNs, %v", found, err)
	}
}
