//go:build unix && !linux

package localpg

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// tie does nothing: only Linux ties a child's life to its parent's.
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

// alive says whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// runsIn says whether the process is one that was started on the directory.
func runsIn(pid int, dir string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && strings.Contains(string(out), "-D "+dir+" ")
}

// segment is shared memory that a killed server left. Only on Linux is it known.
type segment struct{}

func segments(int) []segment { return nil }

func (segment) remove() error { return nil }
