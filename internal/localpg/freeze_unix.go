//go:build unix

package localpg

import (
	"context"
	"syscall"
)

func (c *cluster) freeze(context.Context) error {
	child := c.current()
	if child == nil || child.ended() {
		return nil
	}
	_, err := child.freeze()
	return err
}

func (c *cluster) thaw(context.Context) error {
	child := c.current()
	if child == nil || child.ended() {
		return nil
	}
	signalAll(children(child.pid), syscall.SIGCONT)
	return syscall.Kill(child.pid, syscall.SIGCONT)
}

// freeze stops the process and its children where they are, and returns the children. The process is the first: stopped, it
// starts no more children. It may have been about to start one.
func (p *process) freeze() ([]int, error) {
	err := syscall.Kill(p.pid, syscall.SIGSTOP)
	for known := -1; ; {
		pids := children(p.pid)
		if len(pids) == known {
			return pids, err
		}
		signalAll(pids, syscall.SIGSTOP)
		known = len(pids)
	}
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
