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

// group returns nothing: what it is for is known only on Linux.
func group(int) []int { return nil }

// alive says whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// stopped says whether a process does nothing any more: it has been stopped, or has ended.
func stopped(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || strings.ContainsAny(string(out), "TZ")
}

// startedOn says whether the process is known to be a server that was started on the data directory.
func startedOn(pid int, data string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && strings.Contains(string(out), "-D "+data+" ")
}

// segment is shared memory that a killed server left. Only on Linux is it known.
type segment struct{}

func segments([]int, identity) ([]segment, error) { return nil, nil }

func (segment) remove(identity) error { return nil }
