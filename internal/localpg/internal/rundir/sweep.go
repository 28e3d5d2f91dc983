//go:build unix

package rundir

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
)

// sweep removes the directories in parent of servers whose owners are dead. It considers only directories with this
// package's prefix that belong to this user and have an unlocked owner file. It keeps a directory in which a process may
// still run: it signals the server there to stop, and a later sweep removes the directory. Errors are only logged, since
// they do not affect the server that is about to start.
func sweep(ctx context.Context, parent string, logger *slog.Logger) {
	found, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		if err := sweepDir(dir); err != nil {
			logger.DebugContext(ctx, "keep the directory of a dead process's postgres",
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
	owner, err := lockOld(dir, ownerFile)
	if err != nil {
		return nil // kept, being created, or its owner is alive
	}
	defer owner.Close()
	running, err := lockOld(dir, runningFile)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return endServer(dir)
	case err != nil:
		return err // a process may run there
	}
	defer running.Close()
	return os.RemoveAll(dir)
}

// endServer signals the server that runs in the directory to stop. It signals only a process whose command line contains
// the directory, since the process ID in the directory may have been reused.
func endServer(dir string) error {
	data, err := filepath.EvalSymlinks(filepath.Join(dir, dataDir))
	if err != nil {
		return err
	}
	if pid := postmaster(data); pid != 0 && process.StartedOn(pid, data) {
		return syscall.Kill(pid, syscall.SIGQUIT)
	}
	return errors.New("a process runs there that is not recognized as its server")
}

// postmaster returns the process ID in the postmaster.pid of a data directory, or 0.
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
