package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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
	return statusBytes(status, "VmHWM")
}

// statusBytes returns a field of a /proc/<pid>/status in bytes; 0 if there is none.
func statusBytes(status []byte, field string) int64 {
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if number, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok && name == field {
			kib, _ := strconv.ParseInt(number, 10, 64)
			return kib << 10
		}
	}
	return 0
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
		conns, err := open(ctx, host, 1)
		if err != nil {
			v.close()
			return nil, err
		}
		v.conns = append(v.conns, conns...)
	}
	return v, nil
}

func (v *view) close() { closeConns(v.conns) }

func (v *view) Begin(_ string, total int) { v.total += total }
func (v *view) End()                      {}

func (v *view) Finished(string, shards.Number, error, time.Duration) {
	v.finished++
	if v.finished == max(1, v.total*15/16) {
		for _, conn := range v.conns {
			v.look(conn)
		}
	}
}

// look reads the sessions' memory; what it cannot read stays unknown.
func (v *view) look(conn *pgx.Conn) {
	for _, size := range sessionMemory(v.ctx, conn, "kiloshard migrate") {
		v.largest = max(v.largest, size)
	}
}

// sessionMemory returns the private memory in bytes of each readable session with an application_name in the connection's
// database.
func sessionMemory(ctx context.Context, conn *pgx.Conn, application string) []int64 {
	const query = "select pid from pg_stat_activity where datname = current_database() and application_name = $1"
	rows, _ := conn.Query(ctx, query, application)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil
	}
	var sizes []int64
	for _, pid := range pids {
		// The process ID may belong to another process here; the title of a session's process contains the database.
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !bytes.Contains(title, []byte(conn.Config().Database)) {
			continue
		}
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
			sizes = append(sizes, statusBytes(status, "RssAnon"))
		}
	}
	return sizes
}
