//go:build unix

package localpg

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sweep removes the directories of servers in parent whose owners are dead. It touches only directories of this
// package's name that belong to this user and have an owner's file that nobody has locked. A server that still runs in
// one of them is told to end; its directory is left for the next sweep. What goes wrong is logged and no more: it is no
// fault of the server that is about to be started.
func sweep(ctx context.Context, parent string, logger *slog.Logger) {
	found, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		if err := sweepDir(dir); err != nil {
			logger.DebugContext(ctx, "postgres left over from a dead process stays",
				slog.String("dir", dir), slog.Any("error", err))
		}
	}
}

func sweepDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil // kept, or just being made
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // the owner lives
	}
	data, err := filepath.EvalSymlinks(filepath.Join(dir, "data"))
	if err == nil {
		if pid := postmaster(data); pid != 0 && runsIn(pid, data) {
			return syscall.Kill(pid, syscall.SIGQUIT)
		}
	}
	return os.RemoveAll(dir)
}

// postmaster returns the process ID that a server has noted in its data directory, or 0.
// See https://www.postgresql.org/docs/current/storage-file-layout.html.
func postmaster(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return max(0, pid)
}
