package pgtest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// SmallDisk returns a file system of its own, of 200 MB, which is removed at the end of the test. Take it before the server that writes to it, so
// that the server ends first. Only root may mount it: other users skip the test, except in CI.
func SmallDisk(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	err = syscall.Mount("none", dir, "tmpfs", 0, "size=200m,mode=1777")
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("only root may mount a small file system")
	}
	if err != nil {
		t.Fatal("mount:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error("unmount:", err)
		}
	})
	return dir
}

// UseUp fills a file system with a file, and then leaves so many bytes.
func UseUp(t testing.TB, file string, left int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	for {
		_, err := f.Write(piece)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.Truncate(size - left)
	}
	if err != nil {
		t.Error(err)
	}
}

// IsFull reports whether an error says that the disk is full. Without room for its cache of the catalog, Postgres takes no session, either.
func IsFull(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "53100" || strings.Contains(pg.Message, "could not write init file"))
}

// CreateDatabaseIn makes a database whose files are in a directory, unlike the WAL of its server, and returns a connection string for it.
func CreateDatabaseIn(t testing.TB, server *localpg.Server, dir, name string) string {
	t.Helper()
	dir = filepath.Join(dir, name)
	data, err := os.Stat(server.DataDir())
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil { // root's server has a role of its own
		owner := data.Sys().(*syscall.Stat_t)
		err = os.Chown(dir, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, quoted := Connect(t, server.DSN("postgres")), pgx.Identifier{name}.Sanitize()
	for _, statement := range []string{"create tablespace " + quoted + " location '" + dir + "'", "create database " + quoted + " template template0 tablespace " + quoted} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return server.DSN(name)
}
