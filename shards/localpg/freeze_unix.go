//go:build unix

package localpg

import (
	"context"
	"syscall"
)

// freeze stops the first process first: stopped, it starts no more children. It may have been about to start one.
func (c *cluster) freeze(context.Context) error {
	child := c.current()
	if child == nil || child.ended() {
		return nil
	}
	err := syscall.Kill(child.pid, syscall.SIGSTOP)
	for known := -1; ; {
		pids := children(child.pid)
		if len(pids) == known {
			return err
		}
		signalAll(pids, syscall.SIGSTOP)
		known = len(pids)
	}
}

func (c *cluster) thaw(context.Context) error {
	child := c.current()
	if child == nil || child.ended() {
		return nil
	}
	signalAll(children(child.pid), syscall.SIGCONT)
	return syscall.Kill(child.pid, syscall.SIGCONT)
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
