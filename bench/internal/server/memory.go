package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// SessionMemory returns the private memory in bytes of each readable session with an application_name in the connection's
// database.
func SessionMemory(ctx context.Context, conn *pgx.Conn, application string) []int64 {
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
			sizes = append(sizes, StatusBytes(status, "RssAnon"))
		}
	}
	return sizes
}

// StatusBytes returns a field of a /proc/<pid>/status in bytes; 0 if there is none.
func StatusBytes(status []byte, field string) int64 {
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if number, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok && name == field {
			kib, _ := strconv.ParseInt(number, 10, 64)
			return kib << 10
		}
	}
	return 0
}
