//go:build unix

// Package process starts and ends child processes that are servers, with all of their children and shared memory.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Process is a child process. A goroutine waits for it until it ends or Detach is called.
type Process struct {
	PID  int
	Done chan struct{} // closed when the process has ended
	Err  error         // how it ended; read it after Done

	user     User
	detached chan struct{} // closed to stop waiting for a process that is kept
	waited   chan struct{} // closed when the goroutine has ended
}

// ShutdownLimit is the time for a server to shut down before it is killed.
const ShutdownLimit = time.Minute

// pollInterval is for processes that we cannot wait on.
const pollInterval = 20 * time.Millisecond

// Spawn starts cmd as the user, in its own session, so that signals from a terminal do not reach it. The process and its
// children inherit the lock file. Unless the process is kept, the kernel ends it with this process, on Linux.
func Spawn(cmd *exec.Cmd, user User, lock *os.File, keep bool) (*Process, error) {
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: user.credential}
	if !keep {
		tie(cmd.SysProcAttr)
	}
	p := &Process{user: user, Done: make(chan struct{}), detached: make(chan struct{}), waited: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.waited)
		if !keep {
			// The kernel ties a child to the thread that started it, so the thread must live as long as the child. It
			// is never unlocked and ends with the goroutine.
			runtime.LockOSThread()
		}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.PID = cmd.Process.Pid
		started <- nil
		if keep {
			p.poll()
			_ = cmd.Process.Release()
			return
		}
		p.Err = cmd.Wait()
		close(p.Done)
	}()
	if err := <-started; err != nil {
		<-p.waited
		return nil, err
	}
	return p, nil
}

// poll waits for a process until it ends or Detach is called.
func (p *Process) poll() {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(p.PID, &status, syscall.WNOHANG, nil)
		if pid == p.PID || err != nil && !errors.Is(err, syscall.EINTR) {
			p.Err = fmt.Errorf("exit status %d", status.ExitStatus())
			if status.Signaled() {
				p.Err = fmt.Errorf("signal: %v", status.Signal())
			}
			close(p.Done)
			return
		}
		select {
		case <-p.detached:
			return
		case <-tick.C:
		}
	}
}

// Detach stops waiting for a process that is kept.
func (p *Process) Detach() {
	close(p.detached)
	<-p.waited
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// KillGroup kills a program that runs servers of its own, as initdb does, and waits for the rest of its process group.
// Those servers find the end of their input and shut down. They are not killed unless they take too long: a server may have
// made shared memory that it has not attached yet, and a kill would leave that behind.
func (p *Process) KillGroup(ctx context.Context) error {
	_ = syscall.Kill(p.PID, syscall.SIGKILL) // the process may have ended
	<-p.Done
	ctx, cancel := context.WithTimeout(ctx, ShutdownLimit)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for slices.ContainsFunc(group(p.PID), alive) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			left, err := segments(group(p.PID), p.user)
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
			errs := []error{fmt.Errorf("process group %d: %w", p.PID, ctx.Err()), err}
			for _, s := range left {
				errs = append(errs, s.Remove(p.user))
			}
			return errors.Join(errs...)
		}
	}
	return nil
}

// Kill kills the process and its children and waits until they are gone. It returns the shared memory that they leave.
func (p *Process) Kill(ctx context.Context) ([]Segment, error) {
	family, _ := Freeze(p.PID) // the process may have ended
	family = append(family, p.PID)
	left, unknown := segments(family, p.user)
	signalAll(family, syscall.SIGKILL)
	select {
	case <-p.Done:
	case <-ctx.Done():
		return left, errors.Join(unknown, ctx.Err())
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for _, pid := range family {
		for alive(pid) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return left, errors.Join(unknown, fmt.Errorf("process %d: %w", pid, ctx.Err()))
			}
		}
	}
	return left, unknown
}
