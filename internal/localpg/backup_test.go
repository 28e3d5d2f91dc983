//go:build unix

package localpg_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// backUp takes a base backup of a server, and removes it at the end of the test if it was not used.
func backUp(t *testing.T, server *localpg.Server) *localpg.Backup {
	t.Helper()
	backup, err := server.Backup(t.Context())
	noError(t, err)
	t.Cleanup(func() { noError(t, backup.Remove(context.Background())) })
	return backup
}

// stopLater stops a server that came from a backup at the end of the test.
func stopLater(t *testing.T, server *localpg.Server, err error) *localpg.Server {
	t.Helper()
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	return server
}

func TestStandbyFollowsAndIsPromoted(t *testing.T) {
	t.Parallel()
	primary := start(t, localpg.Config{Source: localpg.Local})
	exec(t, primary.DSN("postgres"), "create table t as select 1 as n")
	backup := backUp(t, primary)
	exec(t, primary.DSN("postgres"), "insert into t values (2)")

	standby, err := backup.Standby(t.Context(), `it's \ "b"`, map[string]string{"max_connections": "210"})
	stopLater(t, standby, err)
	equal(t, "source", standby.Source(), localpg.Local)
	equal(t, "version", standby.Version(), primary.Version())
	equal(t, "setting", ask[string](t, standby.DSN("postgres"), "show max_connections"), "210")
	eventually(t, "the standby has what came after the backup", func() bool {
		return ask[int](t, standby.DSN("postgres"), "select sum(n)::int from t") == 3
	})
	name := "select application_name from pg_stat_replication"
	equal(t, "application_name", ask[string](t, primary.DSN("postgres"), name), `it's \ "b"`)

	noError(t, primary.Kill(t.Context()))
	equal(t, "promoted", ask[bool](t, standby.DSN("postgres"), "select pg_promote()"), true)
	exec(t, standby.DSN("postgres"), "insert into t values (3)")
	noError(t, standby.Kill(t.Context()))
	noError(t, standby.Restart(t.Context()))
	equal(t, "rows after a restart", ask[int](t, standby.DSN("postgres"), "select sum(n)::int from t"), 6)
}

func TestRestoreToANamedPoint(t *testing.T) {
	t.Parallel()
	archive := publicDir(t)
	noError(t, os.Chmod(archive, 0o777)) // for the server's user
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(archive, "*"))
		for _, file := range files {
			noError(t, os.Remove(file))
		}
	})
	server := start(t, localpg.Config{Source: localpg.Local, Settings: map[string]string{
		"archive_mode":    "on",
		"archive_command": fmt.Sprintf("cp %%p %[1]s/part && mv %[1]s/part %[1]s/%%f", archive), // whole or not at all
	}})
	dsn := server.DSN("postgres")
	exec(t, dsn, "create table t as select 1 as n")
	backup := backUp(t, server)
	exec(t, dsn, "insert into t values (2)")
	exec(t, dsn, "select pg_create_restore_point('here')")
	exec(t, dsn, "insert into t values (3)")
	segment := ask[string](t, dsn, "select pg_walfile_name(pg_switch_wal())")
	eventually(t, "the WAL is archived", func() bool { return exists(filepath.Join(archive, segment)) })
	noError(t, server.Stop(t.Context())) // which the backup outlives

	restored, err := backup.Restore(t.Context(), map[string]string{
		"restore_command": "cp " + archive + "/%f %p", "recovery_target_name": "here",
		"recovery_target_action": "promote", "archive_mode": "off",
	})
	stopLater(t, restored, err)
	eventually(t, "the recovery is done", func() bool {
		return !ask[bool](t, restored.DSN("postgres"), "select pg_is_in_recovery()")
	})
	equal(t, "rows", ask[int](t, restored.DSN("postgres"), "select sum(n)::int from t"), 3)
}

func TestBackupsLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := publicDir(t) // says so if a file is left
	server := start(t, localpg.Config{Source: localpg.Local, Dir: dir})
	u, err := url.Parse(server.DSN("postgres"))
	noError(t, err)
	password, _ := u.User.Password()

	backup := backUp(t, server)
	standby, err := backup.Standby(t.Context(), "b", nil)
	stopLater(t, standby, err)
	family := append(childrenOf(t, standby.PID()), standby.PID())
	for _, line := range processes(t, "command=") {
		equal(t, "password in a command line", strings.Contains(line, password), false)
	}
	equal(t, "password in the log", strings.Contains(standby.Log(t.Context()), password), false)
	noError(t, filepath.WalkDir(standby.DataDir(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(filesWith(t, path, password), password) {
			info, err := os.Stat(path)
			noError(t, err)
			equal(t, "rights of "+path, info.Mode(), 0o600)
			equal(t, "owner of "+path, info.Sys().(*syscall.Stat_t).Uid, owner(t, standby.DataDir()))
		}
		return nil // Postgres removes files meanwhile
	}))
	_, err = backup.Standby(t.Context(), "c", nil)
	equal(t, "used twice", err != nil, true)
	noError(t, standby.Stop(t.Context()))
	for _, pid := range family {
		eventually(t, "process gone", func() bool { return !alive(pid) })
	}

	// Starts that fail, are refused or are cut short, and backups that are removed.
	_, err = backUp(t, server).Restore(t.Context(), nil)
	equal(t, "without an archive", err != nil && strings.Contains(err.Error(), "restore_command"), true)
	_, err = backUp(t, server).Restore(t.Context(), map[string]string{"port": "1"})
	equal(t, "bad setting", err != nil && strings.Contains(err.Error(), "setting port"), true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = server.Backup(ctx)
	equal(t, "canceled", errors.Is(err, context.Canceled), true)
	backup = backUp(t, server)
	noError(t, backup.Remove(ctx))
	_, err = backup.Restore(t.Context(), nil)
	equal(t, "after Remove", err != nil, true)
}

func TestBackupOfAServerThatIsNotOurs(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	given := start(t, localpg.Config{DSN: server.DSN("postgres")})
	_, err := given.Backup(t.Context())
	equal(t, "unsupported", errors.Is(err, errors.ErrUnsupported), true)
	noError(t, server.Stop(t.Context()))
	_, err = server.Backup(t.Context())
	equal(t, "stopped", errors.Is(err, localpg.ErrStopped), true)
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	noError(t, err)
	return info.Sys().(*syscall.Stat_t).Uid
}
