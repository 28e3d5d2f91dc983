//go:build unix

// Package rundir makes directories for servers, and removes those whose owners have died.
package rundir

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
)

// Config says where a directory is made.
type Config struct {
	Parent   string // defaults to a directory for temporary files
	InMemory bool   // prefer a file system in memory as the parent, if it has enough room
	Keep     bool   // the directory outlives this process
	Logger   *slog.Logger
}

// New removes the directories of dead owners and creates one that the user can enter.
func New(ctx context.Context, cfg Config, user process.User) (*Dir, error) {
	var errs []error
	for _, parent := range parents(ctx, cfg, user) {
		sweep(ctx, parent, cfg.Logger)
		dir, err := create(ctx, parent, cfg.Keep, user)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// parents returns the directories to try.
func parents(ctx context.Context, cfg Config, user process.User) []string {
	if cfg.Parent != "" {
		return []string{cfg.Parent}
	}
	var dirs []string
	if cfg.InMemory && !cfg.Keep {
		sweep(ctx, memoryDir, cfg.Logger) // directories of dead owners may fill it
		if freeMemory() >= enoughMemory {
			dirs = append(dirs, memoryDir)
		}
	}
	dirs = append(dirs, os.TempDir())
	if user.IsOther() { // other users may not be able to enter root's temporary directory
		dirs = append(dirs, "/tmp", "/var/tmp")
	}
	return slices.Compact(dirs)
}

const (
	memoryDir    = "/dev/shm" // a file system in memory on Linux
	enoughMemory = 8 << 30    // bytes
)

// freeMemory returns the bytes that can be written to memoryDir: what the file system has free, what the machine has
// available, and what the control group may use. It returns 0 if the first two are unknown.
func freeMemory() uint64 {
	var stat unix.Statfs_t
	if err := unix.Statfs(memoryDir, &stat); err != nil {
		return 0
	}
	meminfo, err := os.ReadFile("/proc/meminfo") // proc_meminfo(5)
	if err != nil {
		return 0
	}
	free := min(stat.Bavail*uint64(stat.Bsize), available(meminfo))
	group, err := os.ReadFile("/sys/fs/cgroup/memory.max") // "max" if there is no limit
	if limit, parseErr := strconv.ParseUint(strings.TrimSpace(string(group)), 10, 64); err == nil && parseErr == nil {
		free = min(free, limit)
	}
	return free
}

// available returns MemAvailable in bytes.
func available(meminfo []byte) uint64 {
	lines := bufio.NewScanner(bytes.NewReader(meminfo))
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // "MemAvailable:   24029112 kB"
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kilobytes, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kilobytes << 10
	}
	return 0
}
