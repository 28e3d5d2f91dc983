package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestActionsArePinned holds that workflows name each action by the hash of its commit, since a tag may move, and its version behind.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows %q, %v", files, err)
	}
	pinned := regexp.MustCompile(`@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used := regexp.MustCompile(`(?m)^.*\buses:.*$`).FindAllString(string(text), -1)
		if len(used) == 0 {
			t.Errorf("%s uses no action", file)
		}
		for _, line := range used {
			if !pinned.MatchString(line) {
				t.Errorf("%s: %s: expected NAME@HASH # vX.Y.Z", file, line)
			}
		}
	}
}
