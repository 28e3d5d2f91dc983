package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makes returns the command lines of go run and go test that make comes to, in no order. They do nothing.
func makes(t *testing.T, target string) []string {
	t.Helper()
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase $1 in test|run) echo go \"$@\" >\"$(mktemp " + dir + "/line.XXXXXX)\" ;; *) exec " + program + " \"$@\" ;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", target) //nolint:gosec // a target of ours
	// In CI a missing compiler would be an error.
	cmd.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=", "CI=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "line.*"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(string(line)))
	}
	return lines
}

// TestMakeDemo holds that make demo runs the demo, whose output [TestDemoOfReadme] compares with the README's.
func TestMakeDemo(t *testing.T) {
	t.Parallel()
	if got := makes(t, "demo"); !slices.Equal(got, []string{"go run ./cmd/kiloshard-lab demo"}) {
		t.Errorf("make demo runs %q, expected the demo", got)
	}
}

// TestMakeTest holds that make test runs the tests of every package, each once.
func TestMakeTest(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "./...")
	cmd.Dir = "../.."
	listed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(listed))
	var got []string
	for _, line := range makes(t, "test") {
		if strings.Contains(line, "-run=") {
			continue // the one test that comes before, where Postgres may still fail to come
		}
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "github.com/") {
				got = append(got, word)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("make test tests the packages\n%q\nexpected each once:\n%q", got, want)
	}
}
