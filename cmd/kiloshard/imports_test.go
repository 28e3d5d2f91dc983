package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports holds that the operator's program carries no servers, no containers, no faulty network and no plots. The demo and the
// benchmarks, which need them, are kiloshard-lab.
func TestImports(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := strings.Fields(string(out))
	if !slices.Contains(imports, "github.com/jackc/pgx/v5") {
		t.Fatalf("go list -deps lists %d packages without pgx", len(imports))
	}
	for _, refused := range []string{
		"go.etcd.io/etcd/server", "go.etcd.io/bbolt", "github.com/docker", "github.com/moby", "github.com/testcontainers",
		"github.com/Shopify/toxiproxy", "github.com/fergusstrange/embedded-postgres", "gonum.org", "codeberg.org/go-fonts",
		"github.com/kiloshard/kiloshard/bench", "github.com/kiloshard/kiloshard/internal/localpg",
	} {
		for _, path := range imports {
			if path == refused || strings.HasPrefix(path, refused+"/") {
				t.Errorf("kiloshard imports %s", path)
			}
		}
	}
}
