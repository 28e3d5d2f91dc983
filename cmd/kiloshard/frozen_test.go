package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestFrozenHost has a server accept connections and say nothing: before a command connects, and in the middle of a statement.
// Each command ends, and names the host.
func TestFrozenHost(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	if _, err := server.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dsn := server.DSN("app")
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	config := fmt.Sprintf("cluster: photos\nshards: 4\nepoch: 2026-01-01\nhosts: [{name: pg-a, dsn: %q}]\nplacement: [{shards: 0-3, host: pg-a}]\nmigrations: ./migrations\n",
		dsn+separator+"connect_timeout=1")
	for name, text := range map[string]string{"kiloshard.yaml": config, "migrations/001_users.sql": "create table users (id bigint primary key default next_id());\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var out bytes.Buffer
		code := run(ctx, append(args, "-c", filepath.Join(dir, "kiloshard.yaml")), strings.NewReader(""), &out, &out)
		if ctx.Err() != nil {
			t.Errorf("%s has no limit:\n%s", args, out.String())
		}
		return code, out.String()
	}
	if code, said := command("create"); code != exitDone {
		t.Fatal(said)
	}
	var all sync.WaitGroup
	all.Go(func() { // in the middle of a statement
		if code, said := command("exec", "select pg_sleep(1000)", "--shards", "0"); code == exitDone || !strings.Contains(said, "pg-a") || !strings.Contains(said, "does not answer any more") {
			t.Errorf("exec: exit code %d:\n%s", code, said)
		}
	})
	sleeps := func() (n int) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where state = 'active' and query ~ 'pg_sleep' and pid <> pg_backend_pid()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for sleeps() == 0 {
		select {
		case <-ended:
			t.Fatal("it ended before anything answered too late")
		default:
		}
	}
	if err := server.Freeze(t.Context()); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"verify"}, {"create"}, {"upgrade"}, {"migrate", "up"}, {"migrate", "status"}, {"migrate", "plan"}, {"status"}, {"id", "advance", "--host", "pg-a", "--beyond", "2026-06-01T00:00:00Z"},
	} {
		all.Go(func() {
			code, said := command(args...)
			if code == exitDone && args[0] != "status" || !strings.Contains(said, "pg-a") {
				t.Errorf("%s: exit code %d:\n%s", args, code, said)
			}
			t.Logf("%s: exit code %d: %s", args, code, said)
		})
	}
	all.Wait()
	if err := server.Thaw(t.Context()); err != nil {
		t.Error(err)
	}
}
