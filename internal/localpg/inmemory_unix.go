//go:build unix

package localpg

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	memoryDir    = "/dev/shm" // Linux has a file system in memory there
	enoughMemory = 8 << 30
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
