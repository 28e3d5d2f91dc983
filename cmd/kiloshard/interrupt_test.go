package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// interrupted is a command that waits for a lock which the test holds.
type interrupted struct {
	*testing.T
	dsn    string
	dir    string
	holder pgx.Tx
	cmd    *exec.Cmd
	stdout bytes.Buffer
	lines  *bufio.Scanner // of its standard error
	said   strings.Builder
}

// startInterrupted holds a lock in shard 1, and starts kiloshard migrate up with the given flags.
func startInterrupted(t *testing.T, flags ...string) *interrupted {
	t.Helper()
	i := prepareInterrupted(t)
	if _, err := i.holder.Exec(t.Context(), `lock table shard_00001.users in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	i.write("migrations/002_names.sql", "alter table users add column name text;")
	i.start(append([]string{"migrate", "up"}, flags...)...)
	return i
}

func (i *interrupted) write(name, text string) {
	i.Helper()
	path := filepath.Join(i.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		i.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		i.Fatal(err)
	}
}

// prepareInterrupted makes four shards, and begins a transaction beside.
func prepareInterrupted(t *testing.T) *interrupted {
	t.Helper()
	i := &interrupted{T: t, dsn: shardtest.Hosts(t, 1)[0].ConnString(), dir: t.TempDir()}
	i.write("kiloshard.yaml", `
cluster: photos
shards: 4
epoch: 2026-01-01T00:00:00Z
hosts: [{name: pg-a, dsn: "${PG_A_DSN}"}]
placement: [{shards: 0-3, host: pg-a}]
migrations: ./migrations
`)
	i.write("migrations/001_users.sql", "create table users (id bigint);")
	for _, args := range [][]string{{"create"}, {"migrate", "up"}} {
		if out, err := i.command(args...).CombinedOutput(); err != nil {
			t.Fatalf("kiloshard %v: %v\n%s", args, err, out)
		}
	}
	conn, err := pgx.Connect(t.Context(), i.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if i.holder, err = conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *interrupted) start(args ...string) {
	i.Helper()
	i.cmd = i.command(args...)
	i.cmd.Stdout = &i.stdout
	stderr, err := i.cmd.StderrPipe()
	if err == nil {
		err = i.cmd.Start()
	}
	if err != nil {
		i.Fatal(err)
	}
	i.lines = bufio.NewScanner(stderr)
}

func (i *interrupted) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(i.Context(), "kiloshard", append([]string{"-c", filepath.Join(i.dir, "kiloshard.yaml")}, args...)...)
	cmd.Env = append(os.Environ(), "PG_A_DSN="+i.dsn)
	return cmd
}

// holds waits until a query says true.
func (i *interrupted) holds(query string) {
	i.Helper()
	conn, err := pgx.Connect(i.Context(), i.dsn) // a transaction sees the same statistics to its end
	if err != nil {
		i.Fatal(err)
	}
	defer func() { _ = conn.Close(i.Context()) }()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		var holds bool
		if err := conn.QueryRow(i.Context(), query).Scan(&holds); err != nil {
			i.Fatal(err)
		}
		if holds {
			return
		}
		if time.Now().After(deadline) {
			i.Fatalf("never true: %s; standard error so far:\n%s", query, i.said.String())
		}
	}
}

func (i *interrupted) signal() {
	i.Helper()
	if err := i.cmd.Process.Signal(os.Interrupt); err != nil {
		i.Fatal(err)
	}
}

// says reads standard error until a line has a text in it.
func (i *interrupted) says(text string) {
	i.Helper()
	for i.lines.Scan() {
		fmt.Fprintln(&i.said, i.lines.Text())
		if strings.Contains(i.lines.Text(), text) {
			return
		}
	}
	i.Fatalf("standard error has no %q:\n%s", text, i.said.String())
}

// ends waits for the program and checks its exit code, and that nothing was done in shard 1, now or later.
func (i *interrupted) ends(code int) {
	i.Helper()
	for i.lines.Scan() {
		fmt.Fprintln(&i.said, i.lines.Text())
	}
	var exit *exec.ExitError
	if err := i.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != code {
		i.Fatalf("%v, expected exit code %d; standard error:\n%s", err, code, i.said.String())
	}
	if err := i.holder.Commit(i.Context()); err != nil {
		i.Fatal(err)
	}
	conn, err := pgx.Connect(i.Context(), i.dsn)
	if err != nil {
		i.Fatal(err)
	}
	defer func() { _ = conn.Close(i.Context()) }()
	var columns, sessions int
	const query = `
		select (select count(*) from pg_attribute where attrelid = 'shard_00001.users'::regclass and attname = 'name'),
			(select count(*) from pg_stat_activity where application_name = 'kiloshard migrate' and datname = current_database() and state = 'active')`
	if err := conn.QueryRow(i.Context(), query).Scan(&columns, &sessions); err != nil {
		i.Fatal(err)
	}
	if columns != 0 || sessions != 0 {
		i.Errorf("%d columns and %d statements under way after the program has gone, expected none", columns, sessions)
	}
}

// Shard 1 waits, and the others are done: after Ctrl-C none would be begun.
const (
	someoneWaits   = `select exists (select from pg_stat_activity where application_name = 'kiloshard migrate' and wait_event_type = 'Lock' and datname = current_database())`
	othersAreDone  = `select count(*) = 3 from pg_attribute where attname = 'name' and attrelid = any ('{shard_00000.users, shard_00002.users, shard_00003.users}'::regclass[])`
	someoneCreates = `select exists (select from pg_stat_activity where application_name = 'kiloshard' and query like '%pg_try_advisory_lock%' and datname = current_database())`
)

// The first Ctrl-C says what is awaited, and goes on waiting for what is under way. The second cancels that on the server, and the
// program says what was done.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	i := startInterrupted(t, "--lock-timeout", "1h")
	i.holds(othersAreDone)
	i.holds(someoneWaits)
	i.signal()
	i.says("interrupted: what is under way is finished")
	i.says("shard 1 on pg-a waits for process")
	if !strings.Contains(i.said.String(), "idle in transaction") {
		t.Errorf("it does not say what the holder does:\n%s", i.said.String())
	}
	i.signal()
	i.ends(cli.ExitPartly)
	if said := i.said.String(); !strings.Contains(said, "SQLSTATE 57014") || !strings.Contains(i.stdout.String(), "1 failed") {
		t.Errorf("it does not say what was done:\n%s%s", i.stdout.String(), said)
	}
}

// After Ctrl-C no shard is tried again that waited for a lock in vain.
func TestInterruptStopsRetrying(t *testing.T) {
	t.Parallel()
	i := startInterrupted(t, "--lock-timeout", "10ms", "--retries", "1000000", "-o", "json")
	i.says(`"event":"retry"`)
	i.holds(othersAreDone)
	i.signal()
	i.ends(cli.ExitPartly)
	if said := i.said.String(); !strings.Contains(said, "interrupted, and not tried again") || !strings.Contains(said, "locks there are held by process") {
		t.Errorf("it does not say what was awaited:\n%s", said)
	}
}

// A create that waits for another says for whom when it is interrupted, and changes nothing.
func TestInterruptCreate(t *testing.T) {
	t.Parallel()
	i := prepareInterrupted(t)
	if _, err := i.holder.Exec(t.Context(), `select pg_advisory_xact_lock($1, 1)`, int32(sql.LockClass)); err != nil {
		t.Fatal(err)
	}
	i.start("create")
	i.holds(someoneCreates)
	i.signal()
	i.ends(cli.ExitFailed)
	if said := i.said.String(); !strings.Contains(said, "another create, upgrade or grant is at work: process") {
		t.Errorf("it does not say what was awaited:\n%s", said)
	}
}

// A command that counts rows ends at the first Ctrl-C, without a plan.
func TestInterruptRebalance(t *testing.T) {
	t.Parallel()
	i := prepareInterrupted(t)
	i.start("rebalance", "--writes-over", "1h")
	i.says("counting the rows that are written, for 1h0m0s")
	i.signal()
	i.ends(cli.ExitFailed)
	if said := i.said.String(); !strings.Contains(said, "kiloshard: interrupted\n") || i.stdout.Len() > 0 {
		t.Errorf("got %s%s", i.stdout.String(), said)
	}
}
