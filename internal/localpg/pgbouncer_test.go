//go:build unix

package localpg_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// startBouncer starts a PgBouncer and stops it at the end of the test.
func startBouncer(t *testing.T, cfg localpg.PgBouncerConfig) *localpg.PgBouncer {
	t.Helper()
	bouncer, err := localpg.StartPgBouncer(t.Context(), cfg)
	if errors.Is(err, localpg.ErrUnavailable) {
		missing(t, err.Error())
	}
	noError(t, err)
	t.Cleanup(func() { noError(t, bouncer.Stop(context.Background())) })
	return bouncer
}

// pooled connects by way of a PgBouncer as it has to be done in transaction mode.
func pooled(t *testing.T, bouncer *localpg.PgBouncer) *pgx.Conn {
	t.Helper()
	return connect(t, bouncer.DSN("postgres")+"&default_query_exec_mode=exec")
}

func TestPgBouncerPoolsTransactions(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	bouncer := startBouncer(t, localpg.PgBouncerConfig{DSN: server.DSN("postgres"), Settings: map[string]string{"default_pool_size": "1"}})
	one, two := pooled(t, bouncer), pooled(t, bouncer)

	// Both have the same session of the server in turn, with what the other has left in it: Postgres 18 tells PgBouncer of changes of
	// search_path, and it keeps each client's, but of this setting it knows nothing.
	_, err := one.Exec(t.Context(), "set kiloshard.client = one")
	noError(t, err)
	var left string
	noError(t, two.QueryRow(t.Context(), "show kiloshard.client").Scan(&left))
	equal(t, "kiloshard.client", left, "one")

	// All databases are there.
	dsn, err := server.CreateDatabase(t.Context(), "other")
	noError(t, err)
	exec(t, dsn, "create table photos ()")
	equal(t, "answer", ask[string](t, bouncer.DSN("other")+"&default_query_exec_mode=exec", "select 'photos'::regclass::text"), "photos")
}

func TestPgBouncerStopLeavesNothing(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	dir := publicDir(t) // says so if a file is left
	bouncer := startBouncer(t, localpg.PgBouncerConfig{DSN: server.DSN("postgres"), Dir: dir})
	pooled(t, bouncer)
	pid := bouncer.PID()
	equal(t, "alive", alive(pid), true)

	noError(t, bouncer.Stop(t.Context()))
	noError(t, bouncer.Stop(t.Context()))
	eventually(t, "process gone", func() bool { return !alive(pid) })
	eventually(t, "port free", func() bool { return !listening(bouncer.Address()) })
	equal(t, "PID", bouncer.PID(), 0)
}

func TestPgBouncerDiesWithItsOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	dir := publicDir(t)
	owner, r := play(t, "bounce", dir, nil)
	if r.PID == 0 {
		missing(t, "install Debian's pgbouncer package")
	}
	equal(t, "alive", alive(r.PID), true)
	noError(t, owner.Process.Kill())
	eventually(t, "process gone", func() bool { return !alive(r.PID) })
	eventually(t, "port free", func() bool { return !listening(addressOf(t, r.DSN)) }) // or taken by another for a while

	// The next start sweeps its files. The server of the dead owner may take a while to end, and one that runs keeps its own.
	eventually(t, "files swept", func() bool {
		noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context()))
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		noError(t, err)
		return len(left) == 0
	})
}

func TestPgBouncerKeepsPasswordsToItself(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	dir := publicDir(t)
	bouncer := startBouncer(t, localpg.PgBouncerConfig{DSN: server.DSN("postgres"), Dir: dir})
	u, err := url.Parse(bouncer.DSN("postgres"))
	noError(t, err)
	password, _ := u.User.Password()
	if password == "" {
		t.Fatal("no password in the DSN")
	}
	equal(t, "password in the command line", strings.Contains(commandLine(t, bouncer.PID()), password), false)

	files, err := filepath.Glob(filepath.Join(dir, "*", "data", "*"))
	noError(t, err)
	found := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		noError(t, err)
		if !strings.Contains(string(text), password) {
			continue
		}
		found++
		info, err := os.Stat(path)
		noError(t, err)
		equal(t, "mode of "+filepath.Base(path), info.Mode().Perm(), 0o600)
		equal(t, "root owns "+filepath.Base(path), owner(t, path) == 0, false)
	}
	equal(t, "files with the password", found, 1)

	// A client with another password is turned away.
	u.User = url.UserPassword(u.User.Username(), "s3cr3t-pa55")
	conn, err := pgx.Connect(t.Context(), u.String())
	if err == nil {
		noError(t, conn.Close(t.Context()))
		t.Error("a client got in with a wrong password")
	}
}

func TestPgBouncerErrors(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://ann:s3cr3t-pa55@127.0.0.1:1/app"
	dir := publicDir(t)
	tests := []struct {
		name        string
		cfg         localpg.PgBouncerConfig
		unavailable bool
		want        string
	}{
		{"no program", localpg.PgBouncerConfig{DSN: dsn, Program: "/nowhere/pgbouncer"}, true, "install Debian's pgbouncer package"},
		{"no PgBouncer", localpg.PgBouncerConfig{DSN: dsn, Program: "/bin/echo"}, true, "no version in"},
		{"bad DSN", localpg.PgBouncerConfig{DSN: "postgres://ann:s3cr3t-pa55@127.0.0.1:port/app"}, false, "DSN: neither"},
		{"no password", localpg.PgBouncerConfig{DSN: "postgres://ann@127.0.0.1:1/app?passfile=/nowhere"}, false, "expected one with a password"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.cfg.Dir = dir
			_, err := localpg.StartPgBouncer(t.Context(), test.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), test.unavailable)
			equal(t, "password in the error", strings.Contains(err.Error(), "s3cr3t-pa55"), false)
		})
	}
}

func TestPgBouncerSettings(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	startBouncer(t, localpg.PgBouncerConfig{DSN: server.DSN("postgres")}) // one is to be had
	for name, want := range map[string]string{
		"listen_addr": "chosen by localpg",
		"pool mode":   "not the name of a setting",
		"pool_modes":  "it ended by itself",
	} {
		_, err := localpg.StartPgBouncer(t.Context(), localpg.PgBouncerConfig{
			DSN: server.DSN("postgres"), Dir: publicDir(t), Settings: map[string]string{name: "x"},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("setting %s: got %v, want an error with %q", name, err, want)
		}
	}
}
