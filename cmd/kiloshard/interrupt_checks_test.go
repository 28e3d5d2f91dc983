//go:build unix

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/sql"
)

// hostConn opens a session to the host of a variable.
func (m *mover) hostConn(variable string) *pgx.Conn {
	m.Helper()
	for _, e := range m.env {
		if dsn, ok := strings.CutPrefix(e, variable+"="); ok {
			conn, err := pgx.Connect(m.Context(), dsn)
			if err != nil {
				m.Fatal(err)
			}
			return conn
		}
	}
	m.Fatalf("no %s", variable)
	return nil
}

func (m *mover) exec(conn *pgx.Conn, statements string) {
	m.Helper()
	if _, err := conn.PgConn().Exec(m.Context(), statements).ReadAll(); err != nil {
		m.Fatalf("%s: %v", statements, err)
	}
}

// awaits returns once a query says true in a session.
func (m *mover) awaits(conn *pgx.Conn, query, what string) {
	m.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var holds bool
		if err := conn.QueryRow(m.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&holds); err != nil {
			m.Fatal(err)
		}
		if holds {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("%s: never true: %s", what, query)
		}
	}
}

const (
	waitsForLock   = `select exists (select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database()))`
	waitsForCreate = `select exists (select from pg_stat_activity where application_name = 'kiloshard' and query = 'ROLLBACK' and state = 'idle' and datname = current_database())` // between two tries

	heldCommand = `begin; create function public.hold() returns event_trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); end';
		create event trigger held on ddl_command_end when tag in ('%s') execute function public.hold()`
)

// A command that is interrupted while it looks at hosts says so in no other words, wherever it waits, and begins no move.
func TestInterruptChecks(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	m.write("002_names.sql", "create table names (of regclass, n int primary key); create table counts (n int primary key);")
	m.run(cli.ExitDone, "migrate", "up")
	m.run(cli.ExitDone, "move", "2", "--to", "pg-b", "--login-with-password")
	move := []string{"move", "1", "--to", "pg-b", "--login-with-password"}
	dry, offline := append(move[:5:5], "--dry-run"), append(move[:5:5], "--offline")
	verify := []string{"move", "verify"}
	split := []string{"split", "pg-a", "--to", "pg-b", "--writes-over", "0", "--run"}
	onCommand := func(tag string) string {
		return fmt.Sprintf(heldCommand, tag) + `; commit; begin; select pg_advisory_xact_lock(7)`
	}
	for _, c := range []checkCase{
		{"the ledger of the source", "PG_A_DSN", `begin; lock kiloshard.moves`, waitsForLock, [][]string{move, dry, offline, verify, split}, ""},
		{"the ledger of the target", "PG_B_DSN", `begin; lock kiloshard.moves`, waitsForLock, [][]string{dry}, ""},
		{"a table", "PG_A_DSN", `begin; lock shard_00001.counts`, waitsForLock, [][]string{move, dry, split}, ""},
		{"a column with names", "PG_A_DSN", `begin; lock shard_00001.names`, waitsForLock, [][]string{offline}, ""},
		{"the catalogs of the source", "PG_A_DSN", `begin; lock pg_constraint`, waitsForLock, [][]string{dry, verify}, ""},
		{"the catalogs of the target", "PG_B_DSN", `begin; lock pg_collation`, waitsForLock, [][]string{dry}, ""},
		{"a fence that is tried", "PG_A_DSN", onCommand("CREATE VIEW"), waitsForLock, [][]string{move, dry}, ""},
		{"a login that is tried", "PG_B_DSN", onCommand("CREATE SUBSCRIPTION"), waitsForLock, [][]string{move, dry}, ""},
		{"a shard that is tried", "PG_B_DSN", onCommand("CREATE TABLE"), waitsForLock, [][]string{dry}, ""},
		{"a create", "PG_B_DSN", fmt.Sprintf(`begin; select pg_advisory_xact_lock(%d, 1)`, sql.LockClass), waitsForCreate, [][]string{dry}, ""},
	} {
		m.interrupts(c)
	}
	if status := m.run(cli.ExitDone, "move", "status"); strings.Contains(status, "under way") {
		t.Errorf("got %s", status)
	}
}

// checkCase is something that keeps checks waiting.
type checkCase struct {
	name, host string
	hold       string // holds them up on the host
	waits      string // a query that is true there once they wait
	commands   [][]string
	watch      string // where the query is asked instead
}

// interrupts interrupts commands that are held up by what a session does.
func (m *mover) interrupts(c checkCase) {
	m.Helper()
	holder, watcher := m.hostConn(c.host), m.hostConn(cmp.Or(c.watch, c.host))
	m.exec(watcher, `select 1 from pg_locks, pg_stat_activity, pg_database`) // it reads catalogs that are about to be locked
	m.exec(holder, c.hold)
	for _, args := range c.commands {
		cmd := m.command(args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			m.Fatal(err)
		}
		m.awaits(watcher, c.waits, c.name)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			m.Fatal(err)
		}
		if code := exitCode(cmd.Wait()); code != cli.ExitFailed {
			m.Errorf("%s, %v: exit code %d", c.name, args, code)
		}
		text := said.String()
		if !strings.Contains(text, "interrupted\n") || strings.Contains(text, "cancel") || strings.Contains(text, "57014") || strings.Contains(text, "SHARD") {
			m.Errorf("%s, %v: got\n%s", c.name, args, text)
		}
	}
	m.exec(holder, `rollback; drop event trigger if exists held; drop function if exists public.hold()`)
	_, _ = holder.Close(m.Context()), watcher.Close(m.Context())
}
