//go:build unix

package localpg_test

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestServerDiesWithItsOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	dir := publicDir(t)
	owner, r := play(t, "serve", dir, nil)
	family, memory := append(childrenOf(t, r.PID), r.PID), sharedMemory(t, r.Data)

	// While the owner lives, nobody sweeps its files.
	noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context()))
	equal(t, "data directory", exists(r.Data), true)
	equal(t, "answer", ask[int](t, r.DSN, "select 1"), 1)

	noError(t, owner.Process.Kill())
	for _, pid := range family {
		eventually(t, "server process gone", func() bool { return !alive(pid) })
	}
	eventually(t, "port free", func() bool { return !listening(addressOf(t, r.DSN)) })
	memory.gone(t)

	// The next start sweeps the files, and only those.
	mine := map[string]bool{"kiloshard-pg-notes.txt": false, "kiloshard-pg-empty": true, "other": true}
	for name, isDir := range mine {
		if isDir {
			noError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		} else {
			noError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		}
	}
	equal(t, "data directory", exists(r.Data), true)
	noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context()))
	equal(t, "data directory", exists(r.Data), false)
	for name := range mine {
		noError(t, os.Remove(filepath.Join(dir, name)))
	}
}

func TestKeepAndSweep(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	owner, r := play(t, "keep", dir, nil)
	noError(t, owner.Wait())
	equal(t, "answer", ask[int](t, r.DSN, "select 1"), 1)

	noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context())) // which sweeps
	equal(t, "answer", ask[int](t, r.DSN, "select 1"), 1)

	// With an owner's file that nobody has locked it is like one whose owner died where nothing ties them. It is told to
	// end first, and swept when it has.
	noError(t, os.WriteFile(filepath.Join(filepath.Dir(r.Data), "owner"), nil, 0o600))
	noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context()))
	eventually(t, "server gone", func() bool { return !alive(r.PID) })
	equal(t, "data directory", exists(r.Data), true)
	noError(t, start(t, localpg.Config{Source: localpg.Local, Dir: dir}).Stop(t.Context()))
	equal(t, "data directory", exists(r.Data), false)
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the other tests are run by an ordinary user already")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		missing(t, "a user nobody is needed")
	}
	uid, err := strconv.Atoi(nobody.Uid)
	noError(t, err)
	gid, err := strconv.Atoi(nobody.Gid)
	noError(t, err)
	dir := publicDir(t)
	noError(t, os.Chown(dir, uid, gid))
	child, r := play(t, "cycle", dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}})
	noError(t, child.Wait())
	equal(t, "user", r.UID, uid)
	equal(t, "process alive", alive(r.PID), false)
}

func TestRootDropsItsRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the tests are not run by root")
	}
	server := start(t, localpg.Config{Source: localpg.Local})
	for _, path := range []string{server.DataDir(), "/proc/" + strconv.Itoa(server.PID())} {
		info, err := os.Stat(path)
		noError(t, err)
		owner, err := user.LookupId(strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)))
		noError(t, err)
		if owner.Username != "postgres" && owner.Username != "nobody" {
			t.Fatalf("%s belongs to %s", path, owner.Username)
		}
	}

	// A place that only root can enter.
	_, err := localpg.Start(t.Context(), localpg.Config{Source: localpg.Local, Dir: t.TempDir()})
	if err == nil {
		t.Fatal("started where the server's user cannot go")
	}
}
