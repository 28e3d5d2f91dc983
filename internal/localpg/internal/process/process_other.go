//go:build unix && !linux

package process

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// tie does nothing: only Linux ends a child with its parent.
func tie(*syscall.SysProcAttr) {}

func children(parent int) []int {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil // they notice by themselves that their parent is gone
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// group returns nothing: a process group matters for its shared memory, which is known only on Linux.
func group(int) []int { return nil }

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// stopped reports whether a process has stopped or ended.
func stopped(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || strings.ContainsAny(string(out), "TZ")
}

// StartedOn reports whether a process is known to be a server that was started on the data directory.
func StartedOn(pid int, data string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && strings.Contains(string(out), "-D "+data+" ")
}

// Segment is shared memory that a killed server left. It is known only on Linux.
type Segment struct{}

func segments([]int, User) ([]Segment, error) { return nil, nil }

// Remove does nothing.
func (Segment) Remove(User) error { return nil }
