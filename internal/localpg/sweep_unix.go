//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sweep removes the directories of servers in parent whose owners are dead. It touches only directories of this
// package's name that belong to this user and have an owner's file that nobody has locked. A directory in which a
// process may still run stays: a server there is told to end, and a later sweep removes its directory. What goes
// wrong is logged and no more: it is no fault of the server that is about to be started.
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
	owner, err := openUnlocked(dir, ownerFile)
	if err != nil {
		return nil // kept, or just being made, or the owner lives
	}
	defer owner.Close()
	running, err := openUnlocked(dir, runningFile)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return endServer(dir)
	case err != nil:
		return err // nobody can say that nothing runs there
	}
	defer running.Close()
	return os.RemoveAll(dir)
}

// openUnlocked opens and locks a file. The error is syscall.EWOULDBLOCK if somebody else has locked it.
func openUnlocked(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

// endServer tells the server that runs in the directory to end. It signals no process whose command line does not name
// the directory: the process ID in the directory may meanwhile be another one's.
func endServer(dir string) error {
	data, err := filepath.EvalSymlinks(filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	if pid := postmaster(data); pid != 0 && startedOn(pid, data) {
		return syscall.Kill(pid, syscall.SIGQUIT)
	}
	return errors.New("a process runs there that is not known to be its server")
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
