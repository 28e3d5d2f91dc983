//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// mover makes moves from pg-a to pg-b.
type mover struct {
	*testing.T
	dir string
	env []string
}

func newMover(t *testing.T) *mover {
	t.Helper()
	// A child of this program would ignore SIGHUP, as this program does under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	hosts := shardtest.Hosts(t, 2)
	m := &mover{T: t, dir: t.TempDir(), env: append(os.Environ(), "PG_A_DSN="+hosts[0].ConnString(), "PG_B_DSN="+hosts[1].ConnString())}
	m.write("kiloshard.yaml", `
cluster: photos
shards: 8
epoch: 2026-01-01T00:00:00Z
hosts: [{name: pg-a, dsn: "${PG_A_DSN}"}, {name: pg-b, dsn: "${PG_B_DSN}"}]
placement: [{shards: 0-6, host: pg-a}, {shards: 7, host: pg-b}]
migrations: .
`)
	m.write("001_users.sql", "create table users (id bigint primary key default next_id());")
	m.run(cli.ExitDone, "create")
	m.run(cli.ExitDone, "migrate", "up")
	return m
}

func (m *mover) write(name, text string) {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
}

func (m *mover) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.Context(), "kiloshard", args...)
	cmd.Dir, cmd.Env = m.dir, m.env
	return cmd
}

// run runs a command, which ends with an exit code, and returns what it prints.
func (m *mover) run(code int, args ...string) string {
	m.Helper()
	out, err := m.command(args...).CombinedOutput()
	if got := exitCode(err); got != code {
		m.Fatalf("kiloshard %v: exit code %d, expected %d\n%s", args, got, code, out)
	}
	return string(out)
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode() // -1 of one that a signal has ended
	}
	return -2
}

// holdMap keeps the map from being changed until release is called.
func (m *mover) holdMap() (release func()) {
	m.Helper()
	held, err := os.OpenFile(filepath.Join(m.dir, "kiloshard.yaml.history", "lock"), os.O_RDWR, 0)
	if err == nil {
		err = unix.Flock(int(held.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = held.Close() })
	return func() { _ = held.Close() }
}

// fenced starts a move and returns when its shard is fenced, and stays so until release is called.
func (m *mover) fenced() (shard string, cmd *exec.Cmd, lines *bufio.Scanner, release func()) {
	m.Helper()
	return m.fencedBy("pg-b", func(shard string) (*exec.Cmd, io.ReadCloser) { return m.start(shard) })
}

// fencedBy is fenced for what start starts, which brings a shard to a host. It may be too quick: then it is that of the next shard.
func (m *mover) fencedBy(to string, start func(shard string) (*exec.Cmd, io.ReadCloser)) (shard string, cmd *exec.Cmd, lines *bufio.Scanner, release func()) {
	m.Helper()
	for n := range 7 {
		shard = fmt.Sprint(n)
		cmd, out := start(shard)
		m.Cleanup(func() { _ = out.Close() })
		lines := bufio.NewScanner(out)
		m.readUntil(lines, "cutover: locked") // by then it has asked whether the map could be changed
		release := m.holdMap()
		m.readUntil(lines, "fenced: begun")
		if !strings.Contains(m.run(cli.ExitDone, "route", shard, "-o", "plain"), to) {
			return shard, cmd, lines, release
		}
		release()
		for lines.Scan() { // until it ends
		}
		if err := cmd.Wait(); err != nil {
			m.Fatal(err)
		}
	}
	m.Fatal("each was too quick")
	return shard, nil, nil, nil
}

// start starts the move of a shard, and returns a pipe with what it prints. readUntil reads from that.
func (m *mover) start(shard string, args ...string) (*exec.Cmd, io.ReadCloser) {
	m.Helper()
	return m.begin(append([]string{"move", shard, "--to", "pg-b", "--login-with-password", "-v"}, args...)...)
}

// begin starts a command, and returns a pipe with what it prints.
func (m *mover) begin(args ...string) (*exec.Cmd, io.ReadCloser) {
	m.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		m.Fatal(err)
	}
	cmd := m.command(args...)
	cmd.Stdout, cmd.Stderr = write, write
	err = errors.Join(cmd.Start(), write.Close())
	if err != nil {
		m.Fatal(err)
	}
	return cmd, read
}

func (m *mover) readUntil(lines *bufio.Scanner, text string) {
	m.Helper()
	var said bytes.Buffer
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	m.Fatalf("no %q in:\n%s", text, said.String())
}

// A reader of the output that goes away ends no move, neither before the fence nor behind it.
func TestMoveOutlivesItsReader(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"prepare: begun", "cutover: locked", "cutover: carried", "fenced: begun"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newMover(t)
			cmd, out := m.start("0")
			m.readUntil(bufio.NewScanner(out), at)
			if err := errors.Join(out.Close(), cmd.Wait()); err != nil {
				t.Fatal(err)
			}
			if got := m.run(cli.ExitDone, "route", "0", "-o", "plain"); !strings.Contains(got, "pg-b") {
				t.Errorf("it is still elsewhere: %s", got)
			}
			m.run(cli.ExitDone, "exec", "insert into users default values", "--shards", "0", "-q")
		})
	}
}

// A shard that is fenced is brought to its host in spite of all signals but a kill.
func TestFencedMoveOutlivesSignals(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	shard, cmd, lines, release := m.fenced()
	m.signalAll(cmd)
	m.readUntil(lines, "interrupted: no host serves a shard that is fenced")
	release()
	m.ended(cmd, lines)
	m.servedOn("pg-b", shard)
	m.run(cli.ExitDone, "move", "resume", "--login-with-password")
}

// So is one that goes back.
func TestFencedRollbackOutlivesSignals(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	shard, cmd, lines, release := m.fencedBy("pg-a", func(shard string) (*exec.Cmd, io.ReadCloser) {
		_, out := m.start(shard, "--rollback-for", "1h")
		lines := bufio.NewScanner(out)
		m.readUntil(lines, "can go back until")
		m.Cleanup(func() { _ = out.Close() })
		return m.begin("move", "rollback", shard, "-v")
	})
	m.signalAll(cmd)
	release()
	m.ended(cmd, lines)
	m.servedOn("pg-a", shard)
}

// A host whose standby is about to take half of its shards is split in spite of all signals but a kill.
func TestPromotionOutlivesSignals(t *testing.T) {
	t.Parallel()
	primary := shardtest.OwnServer(t)
	if _, err := primary.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	standby := shardtest.Standby(t, primary, "second")
	m := &mover{T: t, dir: t.TempDir(), env: append(os.Environ(), "PG_A_DSN="+primary.DSN("app"), "PG_B_DSN="+standby.DSN("app"))}
	text := `
cluster: photos
shards: 2
epoch: 2026-01-01T00:00:00Z
hosts: [{name: pg-a, dsn: "${PG_A_DSN}"}]
placement: [{shards: 0-1, host: pg-a}]
`
	m.write("kiloshard.yaml", text)
	m.run(cli.ExitDone, "create")
	m.run(cli.ExitDone, "exec", "create table users (id bigint primary key default next_id())", "--all")
	m.write("two.yaml", strings.Replace(text, `"}]`, `"}, {name: pg-b, dsn: "${PG_B_DSN}"}]`, 1))
	m.run(cli.ExitDone, "map", "edit", "--file", "two.yaml")

	cmd, out := m.begin("split", "pg-a", "--to", "pg-b", "--promote", "--writes-over", "0", "--run", "-v")
	defer out.Close()
	lines := bufio.NewScanner(out)
	m.readUntil(lines, "cutover: fenced")
	release := m.holdMap()
	m.readUntil(lines, "promote: promoted")
	m.signalAll(cmd)
	release()
	m.ended(cmd, lines)
	m.run(cli.ExitDone, "exec", "insert into users default values", "--all", "-q")
	if got := m.run(cli.ExitDone, "map", "show"); !strings.Contains(got, "host: pg-b") {
		t.Errorf("pg-b serves nothing: %s", got)
	}
}

// signalAll sends a command whose shard is fenced all signals by which people and systems end programs.
func (m *mover) signalAll(cmd *exec.Cmd) {
	m.Helper()
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGTSTP} {
		if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			m.Fatal(err)
		}
	}
}

// ended waits for the end of a command.
func (m *mover) ended(cmd *exec.Cmd, lines *bufio.Scanner) {
	for lines.Scan() { // until nobody writes any more
	}
	_ = cmd.Wait()
}

// servedOn fails unless a host serves a shard.
func (m *mover) servedOn(host, shard string) {
	m.Helper()
	m.run(cli.ExitDone, "exec", "insert into users default values", "--shards", shard, "-q")
	if got := m.run(cli.ExitDone, "route", shard, "-o", "plain"); !strings.Contains(got, host) {
		m.Errorf("it is elsewhere: %s", got)
	}
}

// A move whose terminal is closed is interrupted, as by Ctrl-C. A shell may say so twice.
func TestMoveIsInterruptedByHangUp(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	cmd, out := m.start("0", "--rate", "1")
	lines := bufio.NewScanner(out)
	m.readUntil(lines, "publish: begun")
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if code := exitCode(cmd.Wait()); code != cli.ExitPartly {
		t.Errorf("exit code %d, expected %d\n%s", code, cli.ExitPartly, rest)
	}
	m.run(cli.ExitDone, "move", "resume", "--login-with-password")
}

// A shard that nobody serves is more than a line of status: its exit code says so. The subscription of a move is no standby.
func TestStatusOfAFencedShard(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	shard, cmd, _, release := m.fenced()
	if got := m.run(cli.ExitDone, "status"); strings.Contains(got, "kiloshard_move") || !strings.Contains(got, "at work") {
		t.Errorf("a move counts as a standby, or its mover is not seen:\n%s", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release()
	for deadline := time.Now().Add(time.Minute); ; { // until its sessions are gone
		out, err := m.command("status").CombinedOutput()
		if code := exitCode(err); code == cli.ExitPartly && strings.Contains(string(out), "nobody serves shard "+shard+": ") && strings.Contains(string(out), "run kiloshard move resume") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("status: %v\n%s", err, out)
		}
	}
	m.run(cli.ExitDone, "move", "resume", "--login-with-password")
}

// A listing whose reader has gone ends without a word, and as what it has found. A full disk is an error.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	for _, args := range [][]string{{"map", "show"}, {"status"}, {"route", "0", "-o", "json"}, {"status", "--watch", "--every", "10ms"}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		cmd := m.command(args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &stderr
		if err := cmd.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("kiloshard %v: %v, %s", args, err, stderr.String())
		}
		_ = write.Close()
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("a full disk: ", err)
	}
	defer full.Close()
	cmd := m.command("map", "show")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if code := exitCode(cmd.Run()); code != cli.ExitFailed || !strings.Contains(stderr.String(), "standard output: ") {
		t.Errorf("on a full disk: exit code %d, %s", code, stderr.String())
	}
}
