package localpg

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tie makes the kernel send SIGQUIT to a child when the thread that started it ends. To Postgres that is an immediate
// shutdown: as quick as SIGKILL, but its children end as well and no shared memory is left.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// status returns the state and the parent of a process, from /proc/<pid>/stat (proc_pid_stat(5)).
func status(pid int) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name, which is in parentheses, may itself have any character in it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}

func children(parent int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if _, p, ok := status(pid); ok && p == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive says whether a process is there that has not ended.
func alive(pid int) bool {
	state, _, ok := status(pid)
	return ok && state != 'Z' && state != 'X'
}

// runsIn says whether the process is one that has its working directory there.
func runsIn(pid int, dir string) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && cwd == dir
}

// segment is shared memory, which outlives the processes that had it: a file for POSIX shared memory, else the ID of a
// System V segment. Postgres removes both in an orderly shutdown, or when it is started again.
type segment struct {
	file string
	id   int
}

var (
	posixSegment = regexp.MustCompile(`(?m) (/dev/shm/PostgreSQL\.\d+)$`)
	sysvSegment  = regexp.MustCompile(`(?m) (\d+) +/SYSV[0-9a-f]{8} \(deleted\)$`)
)

// segments returns the shared memory that a process has, from /proc/<pid>/maps (proc_pid_maps(5)).
func segments(pid int) []segment {
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	var found []segment
	for _, match := range posixSegment.FindAllSubmatch(maps, -1) {
		found = append(found, segment{file: string(match[1])})
	}
	for _, match := range sysvSegment.FindAllSubmatch(maps, -1) {
		if id, err := strconv.Atoi(string(match[1])); err == nil {
			found = append(found, segment{id: id})
		}
	}
	return found
}

func (s segment) remove() error {
	if s.file != "" {
		if err := os.Remove(s.file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	_, err := unix.SysvShmCtl(s.id, unix.IPC_RMID, nil)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("shared memory segment %d: %w", s.id, err)
	}
	return nil
}
