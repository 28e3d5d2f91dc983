package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// The DSN of a host names its address by a variable: services have that of a PgBouncer there, and commands that of the server. A command that has
// the PgBouncer's says so, and what to do. What services do works behind it.
func TestCommandsBehindPgBouncer(t *testing.T) {
	t.Parallel()
	server := shardtest.Hosts(t, 1)[0].ConnString()
	bouncer := pgtest.StartPgBouncer(t, localpg.PgBouncerConfig{DSN: server})
	parsed, err := dsn.Parse(server)
	if err != nil {
		t.Fatal("a host's DSN cannot be parsed")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"migrations/001_users.sql": "create table users (id bigint primary key);\n",
		"kiloshard.yaml": `cluster: photos
shards: 2
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: "postgres://` + parsed.Get("user") + `:${PG_A_PASSWORD}@${PG_A_ADDRESS}/` + parsed.Get("dbname") + `?sslmode=disable"}
placement:
  - {shards: 0-1, host: pg-a}
migrations: ./migrations
`,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	kiloshard := func(address string, args ...string) (code int, said string) {
		cmd := exec.CommandContext(t.Context(), "kiloshard", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PG_A_PASSWORD="+parsed.Get("password"), "PG_A_ADDRESS="+address)
		out, err := cmd.CombinedOutput()
		return exitCode(err), string(out)
	}
	direct := parsed.Get("host") + ":" + parsed.Get("port")
	for _, args := range [][]string{{"create"}, {"migrate", "up"}, {"verify"}} {
		if code, said := kiloshard(direct, args...); code != cli.ExitDone {
			t.Fatalf("%v at the server: exit code %d\n%s", args, code, said)
		}
	}
	const refused = "unsupported startup parameter (SQLSTATE 08P01); a pooler such as PgBouncer is at this address, and commands need the server itself: expected "
	commands := [][]string{
		{"create"},
		{"upgrade"},
		{"verify"},
		{"status"},
		{"grant", "pg_monitor"},
		{"migrate", "up"},
		{"migrate", "status"},
		{"migrate", "drift"},
		{"migrate", "history"},
		{"exec", "select 1", "--all"},
		{"psql", "0", "--", "-c", "select 1"},
		{"id", "advance", "--host", "pg-a", "--beyond", "2026-01-02T00:00:00Z"},
		{"move", "status"},
		{"rebalance"},
	}
	for _, args := range commands {
		code, said := kiloshard(bouncer.Address(), args...)
		if code != cli.ExitFailed || !strings.Contains(said, bouncer.Address()+": server error: FATAL: "+refused) {
			t.Errorf("%v behind PgBouncer: exit code %d, expected 1 and %q in\n%s", args, code, refused, said)
		}
		if args[0] == "status" && !strings.Contains(said, " pooler ") {
			t.Errorf("expected the state pooler in\n%s", said)
		}
	}
	config := filepath.Join(dir, "kiloshard.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(text), "{name: pg-a, ", `{name: pg-a, direct: "`+dsn.With(server, "require_auth", "scram-sha-256,password,none")+`", `, 1)
	if err := os.WriteFile(config, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		if code, said := kiloshard(bouncer.Address(), args...); code != cli.ExitDone {
			t.Errorf("%v behind PgBouncer, with the server's DSN beside: exit code %d\n%s", args, code, said)
		}
	}
	for _, args := range [][]string{{"route", "1"}, {"id", "next", "--key", "1"}} {
		if code, said := kiloshard(bouncer.Address(), args...); code != cli.ExitDone {
			t.Errorf("%v behind PgBouncer: exit code %d\n%s", args, code, said)
		}
	}
}
