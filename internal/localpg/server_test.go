//go:build unix

package localpg_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := publicDir(t) // says so if a file is left
	server := start(t, localpg.Config{Source: localpg.Local, Dir: dir})

	pid, address := server.PID(), addressOf(t, server.DSN("postgres"))
	equal(t, "source", server.Source(), localpg.Local)
	equal(t, "data directory's grandparent", filepath.Dir(filepath.Dir(server.DataDir())), dir)
	equal(t, "version", ask[string](t, server.DSN("postgres"), "select split_part(version(), ' ', 2)"), server.Version())
	memory := sharedMemory(t, server.DataDir())
	family := append(childrenOf(t, pid), pid)
	if len(family) < 5 {
		t.Fatalf("only these processes found: %v", family)
	}
	// A terminal sends Ctrl-C to the process group of its foreground job.
	group, err := syscall.Getpgid(pid)
	noError(t, err)
	equal(t, "process group", group, pid)

	noError(t, server.Stop(t.Context()))
	for _, pid := range family {
		eventually(t, "process gone", func() bool { return !alive(pid) })
	}
	eventually(t, "port free", func() bool { return !listening(address) })
	equal(t, "PID", server.PID(), 0)
	memory.gone(t)

	noError(t, server.Stop(t.Context()))
	for name, err := range map[string]error{
		"Kill":           server.Kill(t.Context()),
		"Restart":        server.Restart(t.Context()),
		"CreateDatabase": second(server.CreateDatabase(t.Context(), "late")),
	} {
		equal(t, name+" after Stop", errors.Is(err, localpg.ErrStopped), true)
	}
}

func second(_ string, err error) error { return err }

func TestStopWithEndedContext(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	pid := server.PID()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	noError(t, server.Stop(ctx))
	equal(t, "process alive", alive(pid), false)
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	dsn, err := server.CreateDatabase(t.Context(), "app")
	noError(t, err)
	exec(t, dsn, "create table t as select 42 as n")
	pid, family := server.PID(), childrenOf(t, server.PID())

	noError(t, server.Kill(t.Context()))
	for _, pid := range append(family, pid) {
		equal(t, "process alive", alive(pid), false)
	}
	eventually(t, "port free", func() bool { return !listening(addressOf(t, dsn)) })
	noError(t, server.Kill(t.Context()))

	noError(t, server.Restart(t.Context()))
	equal(t, "row", ask[int](t, dsn, "select n from t"), 42)
	equal(t, "recoveries", strings.Count(server.Log(t.Context()), "was not properly shut down"), 1)

	recovered := server.PID()
	noError(t, server.Restart(t.Context()))
	equal(t, "row", ask[int](t, dsn, "select n from t"), 42)
	equal(t, "same process", server.PID() == recovered, false)
	log, err := os.ReadFile(filepath.Join(filepath.Dir(server.DataDir()), "server.log"))
	noError(t, err)
	equal(t, "recoveries", strings.Count(string(log), "was not properly shut down"), 1)
}

func TestKillLeavesNoMemory(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	memory := sharedMemory(t, server.DataDir())
	noError(t, server.Kill(t.Context()))
	noError(t, server.Stop(t.Context()))
	memory.gone(t)
}

func TestRestartAfterFailures(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	noError(t, syscall.Kill(server.PID(), syscall.SIGINT)) // not by us
	eventually(t, "the server ends", func() bool { return server.PID() == 0 })
	noError(t, server.Restart(t.Context()))
	equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	equal(t, "canceled", errors.Is(server.Restart(ctx), context.Canceled), true)
	equal(t, "PID", server.PID(), 0)

	other, err := net.Listen("tcp", addressOf(t, server.DSN("postgres")))
	noError(t, err)
	time.AfterFunc(time.Second, func() { _ = other.Close() }) // who has the port gives it back
	noError(t, server.Restart(t.Context()))
	equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)
}

func TestPasswordIsOnlyInTheDSN(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	u, err := url.Parse(server.DSN("postgres"))
	noError(t, err)
	password, _ := u.User.Password()
	if len(password) < 20 {
		t.Fatal("the password is short")
	}
	for what, text := range map[string]string{
		"description": server.Describe(), "log": server.Log(t.Context()), "command line": commandLine(t, server.PID()),
		"files": filesWith(t, filepath.Dir(server.DataDir()), password),
	} {
		equal(t, "password in "+what, strings.Contains(text, password), false)
	}
	// What is found on the PATH may be a link; the directory that it leads to has all the programs.
	bin := ask[string](t, server.DSN("postgres"), "select setting from pg_config where name = 'BINDIR'")
	equal(t, "description", server.Describe(), "PostgreSQL "+server.Version()+" from "+bin+", port "+u.Port())

	u.User = url.UserPassword("postgres", "wrong")
	_, err = localpg.Start(t.Context(), localpg.Config{DSN: u.String()})
	equal(t, "without the password", err == nil, false)
}
