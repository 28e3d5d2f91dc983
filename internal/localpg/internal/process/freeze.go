//go:build unix

package process

import (
	"syscall"
	"time"
)

// stopLimit is the time for a process to stop: the kernel first finishes what the process does there, such as starting a child.
const stopLimit = 5 * time.Second

// Freeze stops a process and its children with SIGSTOP, and returns the children. The process stops first, since it starts no
// more children after that.
func Freeze(pid int) ([]int, error) {
	err := syscall.Kill(pid, syscall.SIGSTOP)
	for deadline := time.Now().Add(stopLimit); ; {
		last := stopped(pid) || err != nil || time.Now().After(deadline)
		pids := children(pid)
		signalAll(pids, syscall.SIGSTOP)
		if last {
			return pids, err
		}
	}
}

// Thaw lets a process and its children continue.
func Thaw(pid int) error {
	signalAll(children(pid), syscall.SIGCONT)
	return syscall.Kill(pid, syscall.SIGCONT)
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
