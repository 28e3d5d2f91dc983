package router_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeNamesEachFile keeps the guide to this folder true: each file stands in it once, and no other.
func TestReadmeNamesEachFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		n := strings.Count(string(text), "["+file+"]("+file+")")
		if n != 1 {
			t.Errorf("README.md names %s %d times, expected once", file, n)
		}
		links += n
	}
	if all := strings.Count(string(text), ".go]("); all != links {
		t.Errorf("README.md names %d files that are not here", all-links)
	}
}
