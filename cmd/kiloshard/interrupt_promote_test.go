//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A split by promotion that is interrupted during its checks says so in no other words, and the standby stays one.
func TestInterruptPromoteChecks(t *testing.T) {
	t.Parallel()
	primary := shardtest.OwnServer(t)
	if _, err := primary.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`alter system set max_standby_streaming_delay = -1`, `create table apart ()`} {
		if err := say(t.Context(), primary, statement); err != nil {
			t.Fatal(err)
		}
	}
	standby := shardtest.Standby(t, primary, "second")
	m := &mover{T: t, dir: t.TempDir(), env: append(os.Environ(), "PG_A_DSN="+primary.DSN("app"), "PG_B_DSN="+standby.DSN("app"))}
	const before = `
cluster: photos
shards: 4
epoch: 2026-01-01T00:00:00Z
hosts: [{name: pg-a, dsn: "${PG_A_DSN}"}]
placement: [{shards: 0-3, host: pg-a}]
migrations: .
`
	m.write("kiloshard.yaml", before)
	m.write("001_users.sql", "create table users (id bigint primary key default next_id());")
	m.run(cli.ExitDone, "create")
	m.run(cli.ExitDone, "migrate", "up")
	m.write("new.yaml", strings.Replace(before, `DSN}"}]`, `DSN}"}, {name: pg-b, dsn: "${PG_B_DSN}"}]`, 1))
	m.run(cli.ExitDone, "map", "edit", "--file", "new.yaml")
	dry := []string{"split", "pg-a", "--to", "pg-b", "--promote", "--writes-over", "0"}
	m.run(cli.ExitDone, dry...) // makes the ledger
	both := [][]string{dry, append(dry[:7:7], "--run")}

	const (
		waits  = `select exists (select from pg_locks where not granted)` // also for a catalog of all databases
		marked = `select exists (select from kiloshard.move_markers)`
		late   = `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%startup%')`
	)
	for _, c := range []checkCase{
		{"the ledger", "PG_A_DSN", `begin; lock kiloshard.moves`, waits, both, ""},
		{"a table", "PG_A_DSN", `begin; lock shard_00001.users`, waits, both, ""},
		{"a catalog", "PG_A_DSN", `begin; lock pg_subscription`, waits, both, ""},
	} {
		m.interrupts(c)
	}
	// A reader keeps the standby from replaying a lock, and what comes after it.
	reader := m.hostConn("PG_B_DSN")
	m.exec(reader, `begin; select from apart`)
	m.interrupts(checkCase{"why the standby is behind", "PG_A_DSN", `begin; lock pg_locks; lock apart`, late, both, "PG_B_DSN"})
	m.interrupts(checkCase{"a marker", "PG_A_DSN", `begin`, marked, both, ""})
	_ = reader.Close(t.Context())
	m.run(cli.ExitDone, dry...)
}
