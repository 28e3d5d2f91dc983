//go:build unix

package localpg

import (
	"context"
	"syscall"
	"time"
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

// stopLimit is how long a process may take to stop: the kernel lets it finish what it does there, such as starting a child.
const stopLimit = 5 * time.Second

// freeze stops the process and its children where they are, and returns the children. The process is the first: once it has
// stopped, it starts no more children.
func (p *process) freeze() ([]int, error) {
	err := syscall.Kill(p.pid, syscall.SIGSTOP)
	for deadline := time.Now().Add(stopLimit); ; {
		last := stopped(p.pid) || err != nil || time.Now().After(deadline)
		pids := children(p.pid)
		signalAll(pids, syscall.SIGSTOP)
		if last {
			return pids, err
		}
	}
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}
