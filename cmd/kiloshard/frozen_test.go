//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// hangLimit ends a command that waits for the address that hangs: each login there may take as long as connect_timeout in frozenDSN.
const hangLimit = 2 * time.Minute

// frozenDSN returns a DSN with the addresses of two servers.
func frozenDSN(t *testing.T, first, second string) string {
	t.Helper()
	a, err := dsn.Parse(first)
	if err != nil {
		t.Fatal("a server's DSN cannot be parsed")
	}
	b, err := dsn.Parse(second)
	if err != nil {
		t.Fatal("a server's DSN cannot be parsed")
	}
	return dsn.With(second, "host", a.Get("host")+","+b.Get("host"), "port", a.Get("port")+","+b.Get("port"), "connect_timeout", "600")
}

// frozenCluster is a directory with the config of a cluster. Its map is in a Postgres store at two addresses, of which the first is a standby
// that hangs, and so is its first host. The second host is another server.
type frozenCluster struct {
	*testing.T
	dir string
	env []string
}

func newFrozenCluster(t *testing.T) *frozenCluster {
	t.Helper()
	config := shardtest.ServerConfig() // for moves of shards
	primary := pgtest.Start(t, config)
	for _, name := range []string{"app", "control", "old"} {
		if _, err := primary.CreateDatabase(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	old, err := pgx.Connect(t.Context(), primary.DSN("old"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.Exec(t.Context(), `create table users (id bigint primary key)`)
	if err := errors.Join(err, old.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	standby := shardtest.Standby(t, primary, "second")
	if err := standby.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &frozenCluster{T: t, dir: t.TempDir()}
	c.env = append(os.Environ(), cli.StoreVariable+"=10m", // so that one address may take longer than hangLimit
		"PG_A_DSN="+frozenDSN(t, standby.DSN("app"), primary.DSN("app")), "PG_B_DSN="+shardtest.Hosts(t, 1)[0].ConnString(),
		"PG_OLD_DSN="+frozenDSN(t, standby.DSN("old"), primary.DSN("old")), "PG_STORE_DSN="+frozenDSN(t, standby.DSN("control"), primary.DSN("control")))
	const store = "cluster: photos\nstore: {kind: postgres, dsn: \"${PG_STORE_DSN}\", variables: [\"PG_*\"]%s}\nmigrations: ./migrations\n"
	c.write("kiloshard.yaml", fmt.Sprintf(store, ""))
	c.write("psql.yaml", fmt.Sprintf(store, `, local: {require_auth: "none,password,md5,scram-sha-256"}`)) // an old psql has no require_auth
	c.write("map.yaml", `
cluster: photos
shards: 4
epoch: 2026-01-01T00:00:00Z
strategy: {by: modulo, of: 4}
hosts:
  - {name: pg-a, dsn: "${PG_A_DSN}", weight: 1}
  - {name: pg-b, dsn: "${PG_B_DSN}", weight: 1}
placement:
  - {shards: 0-1, host: pg-a}
  - {shards: 2-3, host: pg-b}
`)
	c.write("one.yaml", `
cluster: old
shards: 2
epoch: 2026-01-01T00:00:00Z
old_ids_below: 1099511627776
hosts: [{name: old, dsn: "${PG_OLD_DSN}"}]
placement: [{shards: 0-1, host: old}]
`)
	c.write("views.yaml", "key: public.users.id\nstrategy: {by: modulo}\n")
	c.write("entities.yaml", "shards: 1\nindexes:\n  - name: index_link\n    properties: [{name: link, type: text}]\n")
	c.write("old.log", "2026-11-01 12:00:00.000 UTC [7] LOG:  duration: 0.100 ms  statement: select * from users where id = 1\n")
	c.write("migrations/001_users.sql", "create table users (id bigint primary key default next_id());\n")
	c.write("migrations/003_likes.sql", "create table likes (id bigint primary key);\n---- create above / drop below ----\ndrop table likes;\n")
	return c
}

func (c *frozenCluster) write(name, text string) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		c.Fatal(err)
	}
}

// run runs a command, which must succeed, and returns what it prints on standard output. It may be called by several goroutines.
func (c *frozenCluster) run(args ...string) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), hangLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kiloshard", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.Errorf("kiloshard %s: %v\n%s%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), &stdout, &stderr)
	}
	return stdout.String()
}

// The command lines of TestFrozenAddress, by the command: first what changes the cluster, then what looks at it, then moves.
var (
	frozenChanges = [][]string{
		{"map import", "map.yaml"},
		{"create"},
		{"migrate up"},
		{"migrate redo", "--yes"},
		{"migrate down", "--to", "2", "--yes"},
		{"migrate up"},
		{"migrate force", "--shards", "0", "--to", "3", "--yes"},
		{"migrate accept", "1"},
		{"grant", "pg_monitor"},
		{"upgrade"},
		{"id advance", "--host", "pg-a", "--beyond", "2026-01-02T00:00:00Z"},
		{"open", "--shards", "4-5", "--host", "pg-a"},
		{"adopt plan", "--from", "${PG_OLD_DSN}", "--key", "users.id"},
		{"adopt queries", "--from", "${PG_OLD_DSN}", "--key", "users.id", "--file", "queries.yaml", "--log", "old.log"},
		{"create", "-c", "one.yaml"},
		{"adopt views", "-c", "one.yaml", "--plan", "views.yaml"},
		{"adopt status", "-c", "one.yaml", "--rows"},
		{"adopt tables", "-c", "one.yaml", "--quiet-for", "0s"},
		{"adopt back", "-c", "one.yaml"},
		{"adopt views", "-c", "one.yaml", "--plan", "views.yaml"},
		{"adopt tables", "-c", "one.yaml", "--quiet-for", "0s"},
		{"adopt finish", "-c", "one.yaml", "--keep-for", "0s", "--yes"},
		{"map export", "next.yaml"},
		{"map edit", "--file", "heavier.yaml"},
		{"map rollback", "2"},
	}
	frozenLooks = [][]string{
		{"verify"},
		{"status"},
		{"migrate status"},
		{"migrate plan"},
		{"migrate history"},
		{"migrate drift"},
		{"exec", "select count(*) from users", "--all"},
		{"psql", "0", "-c", "psql.yaml", "--", "-X", "-c", "select 1"},
		{"id next", "--key", "1"},
		{"id encode", "--time", "2026-03-01T12:00:00Z", "--shard", "1"},
		{"id decode", "43124157038213001"},
		{"route", "1"},
		{"map show"},
		{"map history"},
		{"map diff"},
		{"cleaner", "--entities", "entities.yaml", "--once"},
		{"drain", "pg-b", "--dry-run", "--writes-over", "0"},
		{"rebalance", "--writes-over", "0"},
		{"split", "pg-a", "--to", "pg-b", "--writes-over", "0"},
		{"move status"},
	}
	frozenMoves = [][]string{
		{"move", "1", "--to", "pg-b", "--login-with-password"},
		{"move resume"},
		{"move abort", "--yes"},
		{"move rollback", "--yes"},
		{"move keep"},
		{"move verify"},
		{"move clean", "--yes"},
		{"move", "1", "--to", "pg-a", "--login-with-password"},
		{"move clean", "--yes"},
	}
	// What asks neither the store nor a host.
	frozenOffline = []string{"init", "man", "version", "migrate new", "completion bash", "completion fish", "completion powershell", "completion zsh"}
)

// TestFrozenAddress runs every command while the first of two addresses of a host, and of the store, hangs: the kernel there takes connections, and the
// server says nothing.
func TestFrozenAddress(t *testing.T) {
	t.Parallel()
	c := newFrozenCluster(t)
	c.write("migrations/002_entities.sql", c.run("cleaner", "--entities", "entities.yaml", "--migration"))
	for _, line := range frozenChanges {
		c.run(append(strings.Fields(line[0]), line[1:]...)...)
		if t.Failed() {
			return // the others would fail for that
		}
		if line[0] == "map export" {
			text, err := os.ReadFile(filepath.Join(c.dir, line[1]))
			if err != nil {
				t.Fatal(err)
			}
			c.write("heavier.yaml", strings.Replace(string(text), "weight: 1", "weight: 2", 1))
		}
	}
	looks := make(chan []string)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for line := range looks {
				c.run(append(strings.Fields(line[0]), line[1:]...)...)
			}
		})
	}
	for _, line := range frozenLooks {
		if _, err := exec.LookPath("psql"); line[0] != "psql" || err == nil {
			looks <- line
		}
	}
	close(looks)
	all.Wait()
	for _, line := range frozenMoves {
		c.run(append(strings.Fields(line[0]), line[1:]...)...)
	}
}

// Each command is one of those that TestFrozenAddress runs, or asks nobody.
func TestFrozenAddressRunsAll(t *testing.T) {
	t.Parallel()
	known := slices.Clone(frozenOffline)
	for _, line := range slices.Concat(frozenChanges, frozenLooks, frozenMoves) {
		known = append(known, line[0])
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		runs := cmd.Runnable() && (!cmd.HasSubCommands() || name == "move")
		if runs && !cmd.Hidden && !cmd.IsAdditionalHelpTopicCommand() && name != "help" && !slices.Contains(known, name) {
			t.Errorf("kiloshard %s: expected a command line of it in TestFrozenAddress", name)
		}
	}
	walk(program.Kiloshard(newApp()))
}
