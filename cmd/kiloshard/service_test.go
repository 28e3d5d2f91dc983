package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServiceIsSmall limits what a service links that imports router and shards: modules, ours included, and bytes of the
// program, of which there are 10 and 12.9 MB. Bare pgxpool has 7 modules with its own, and 10.5 MB (Go 1.26).
func TestServiceIsSmall(t *testing.T) {
	t.Parallel()
	const (
		mostModules = 10
		mostBytes   = 13_500_000
	)
	program := filepath.Join(t.TempDir(), "service")
	list := goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./testdata/service")
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(list))))
	if len(modules) < 2 || len(modules) > mostModules {
		t.Errorf("%d modules, expected at most %d:\n%s", len(modules), mostModules, strings.Join(modules, "\n"))
	}
	// The size depends on these flags, so each is given here and GOFLAGS has no say; they are those of make test, which has built most of it. Without -w there are 3 MB more, for debuggers.
	goCommand(t, "build", "-ldflags=-w", "-gcflags=", "-tags=", "-trimpath=false", "-buildvcs=false", "-race=false", "-cover=false", "-o", program, "./testdata/service")
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostBytes {
		t.Errorf("a program of %d bytes, expected at most %d", info.Size(), mostBytes)
	}
}

// goCommand runs go for one system, so that the same comes out on all, and returns what it prints.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOEXPERIMENT=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
