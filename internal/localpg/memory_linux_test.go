package localpg_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// TestRestartWithMemoryInUse has the shared memory of a killed server outlive it for a moment, as when somebody looks at its
// processes in /proc while they end. Postgres does not start as long as that is so.
func TestRestartWithMemoryInUse(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	id, err := strconv.Atoi(string(sharedMemory(t, server.DataDir())))
	noError(t, err)
	memory := attach(t, id, server.DataDir())
	noError(t, server.Kill(t.Context()))
	time.AfterFunc(time.Second, func() { _ = unix.SysvShmDetach(memory) })
	noError(t, server.Restart(t.Context()))
	equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)
}

// attach attaches shared memory of a server as the server's user: root may not in a container.
func attach(t *testing.T, id int, data string) (memory []byte) {
	t.Helper()
	info, err := os.Stat(data)
	noError(t, err)
	owner, keep := info.Sys().(*syscall.Stat_t), ^uintptr(0)
	attached := make(chan error)
	go func() {
		// The user is this thread's alone, and it ends with the goroutine.
		runtime.LockOSThread()
		_, _, group := unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(owner.Gid), keep)
		_, _, user := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(owner.Uid), keep)
		var err error
		if group != 0 || user != 0 {
			err = errors.Join(group, user)
		} else {
			memory, err = unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
		}
		attached <- err
	}()
	noError(t, <-attached)
	return memory
}
