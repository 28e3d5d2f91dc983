package localpg_test

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiloshard/kiloshard/shards/localpg"
)

// TestRestartWithMemoryInUse has the shared memory of a killed server outlive it for a moment, as when somebody looks at its
// processes in /proc while they end. Postgres does not start as long as that is so.
func TestRestartWithMemoryInUse(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{Source: localpg.Local})
	id, err := strconv.Atoi(sharedMemory(t, server.PID(), server.DataDir()).sysv)
	noError(t, err)
	memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	noError(t, err)
	noError(t, server.Kill(t.Context()))
	time.AfterFunc(time.Second, func() { _ = unix.SysvShmDetach(memory) })
	noError(t, server.Restart(t.Context()))
	equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)
}
