package shardtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// Hosts returns n empty databases as hosts pg-a, pg-b and so on. They are dropped when the test
// ends.
func Hosts(t testing.TB, n int) []shards.Host {
	t.Helper()
	return clones(t, make([]string, n))
}

// clones returns a host for each of the templates: a clone of it, or an empty database where the
// template's name is empty.
func clones(t testing.TB, templates []string) []shards.Host {
	t.Helper()
	s := server(t)
	hosts := make([]shards.Host, len(templates))
	for i, template := range templates {
		name := newName()
		if err := createDatabase(t.Context(), name, template); err != nil {
			t.Fatal("shardtest:", err)
		}
		hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: s.DSN(name)}
		t.Cleanup(func() { discard(t, hosts[i], name) })
	}
	return hosts
}

// discard drops a test's database, unless the test failed and KILOSHARD_KEEP is set.
func discard(t testing.TB, host shards.Host, name string) {
	if t.Failed() && keep() {
		shared.mu.Lock()
		shared.kept = true
		shared.mu.Unlock()
		// A file, since the DSN contains a password, and logs must not.
		file := filepath.Join(os.TempDir(), name+".dsn")
		err := os.WriteFile(file, []byte(host.ConnString()), 0o600)
		t.Logf("shardtest: host %s is kept: psql \"$(cat %s)\" (%v)", host.Name, file, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := dropDatabase(ctx, name); err != nil {
		t.Log("shardtest:", err)
	}
}

func dropDatabase(ctx context.Context, name string) error {
	return exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// newName returns a name that no other database of the server has.
func newName() string {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.databases++
	return fmt.Sprintf("kiloshard_test_%d_%d", os.Getpid(), shared.databases)
}

// createDatabase creates a database as a clone of the template, or an empty one for "". It clones
// one database at a time, since Postgres refuses to clone a template that is in use.
func createDatabase(ctx context.Context, name, template string) error {
	if template == "" {
		template = "template0"
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	if shared.server.Source() != localpg.DSN { // without fsync it is half the work to copy files
		statement += " STRATEGY file_copy"
	}
	return exec(ctx, statement)
}
