package migrations

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
)

// Memory is read from /proc, so it is unknown on systems without /proc, and for servers on other machines or in containers.

// resetPeak restarts the measurement of peakRSS, if the kernel allows it.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // see proc(5); if it fails, the peak is that since the process started
}

// peakRSS returns the peak memory of this process in bytes; 0 if unknown.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return server.StatusBytes(status, "VmHWM")
}

// view measures the sessions of a run of Up near its end. It is the fanout.Progress of that run.
type view struct {
	ctx      context.Context
	conns    []*pgx.Conn // to each host, without the delay
	total    int
	finished int
	largest  int64 // private memory of the largest session, in bytes
}

func openView(ctx context.Context, m *shards.Map) (*view, error) {
	v := &view{ctx: ctx}
	for _, host := range m.Hosts() {
		conn, err := server.Connect(ctx, host)
		if err != nil {
			v.close()
			return nil, err
		}
		v.conns = append(v.conns, conn)
	}
	return v, nil
}

func (v *view) close() { server.Close(v.conns...) }

func (v *view) Begin(_ string, total int) { v.total += total }
func (v *view) End()                      {}

func (v *view) Finished(string, shards.Number, error, time.Duration) {
	v.finished++
	if v.finished == max(1, v.total*15/16) {
		for _, conn := range v.conns {
			for _, size := range server.SessionMemory(v.ctx, conn, "kiloshard migrate") {
				v.largest = max(v.largest, size)
			}
		}
	}
}
