package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// TestExecLeavesLockedShards holds the lock of a migration or a move in one shard.
func TestExecLeavesLockedShards(t *testing.T) {
	t.Parallel()
	m := shardtest.New(t, shardtest.Config{Shards: 4, Hosts: 1}).Map
	text, err := m.Config().YAML()
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/kiloshard.yaml"
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "select pg_advisory_lock($1::int, 3)", int32(sql.ShardLock)); err != nil {
		t.Fatal(err)
	}
	kiloshard := func(args ...string) (code int, said string) {
		var out bytes.Buffer
		code = run(t.Context(), append([]string{"-c", file}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	if code, said := kiloshard("exec", "create table t (id int)", "--all"); code != cli.ExitPartly || !strings.Contains(said, "failed: shard 3") || !strings.Contains(said, "a migration or a move is at work in the shard") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if code, said := kiloshard("exec", "select 1", "--shards", "3", "--read-only"); code != 0 {
		t.Errorf("read-only: exit code %d:\n%s", code, said)
	}
	if _, err := conn.Exec(t.Context(), "select pg_advisory_unlock_all(), pg_advisory_lock_shared($1::int, 3)", int32(sql.ShardLock)); err != nil {
		t.Fatal(err)
	}
	if code, said := kiloshard("exec", "create table t (id int)", "--shards", "3"); code != 0 {
		t.Errorf("beside another exec: exit code %d:\n%s", code, said)
	}
}
