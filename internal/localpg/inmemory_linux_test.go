package localpg_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// A server without fsync has its data in memory where there is room; one that asks for durable writes has not.
func TestDataIsInMemory(t *testing.T) {
	t.Parallel()
	var shm syscall.Statfs_t
	noError(t, syscall.Statfs("/dev/shm", &shm))
	roomy := shm.Bavail*uint64(shm.Bsize) > 9<<30
	for fsync, want := range map[string]bool{"off": true, "on": false} {
		server, err := localpg.Start(t.Context(), localpg.Config{Source: localpg.Local, Settings: map[string]string{"fsync": fsync}})
		noError(t, err)
		data := server.DataDir()
		noError(t, server.Stop(t.Context()))
		equal(t, "data directory", exists(data), false)
		if strings.HasPrefix(os.TempDir(), "/dev/shm") {
			want = true
		} else if !roomy {
			want = false
		}
		equal(t, "fsync "+fsync+": in memory", strings.HasPrefix(data, "/dev/shm/"), want)
	}
}
