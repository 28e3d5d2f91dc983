//go:build unix

package localpg

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

// process is a child process. A goroutine waits for it, from spawn until it has ended or is let go of.
type process struct {
	pid    int
	user   identity
	done   chan struct{} // closed when the process has ended
	err    error         // how it ended; to be read after done
	letGo  chan struct{} // closed to let go of a process that is kept
	waited chan struct{} // closed when the goroutine has ended
}

// processEvery is the poll interval for processes that cannot be waited for.
const processEvery = 20 * time.Millisecond

// spawn starts cmd as the user, in a session of its own so that signals from a terminal do not reach it. The process
// and its children hold the lock that says that the directory is in use. Unless the process is kept, it shares this
// process's fate where the system offers that.
func spawn(cmd *exec.Cmd, user identity, dir *runDir, keep bool) (*process, error) {
	cmd.ExtraFiles = []*os.File{dir.running}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: user.credential}
	if !keep {
		tie(cmd.SysProcAttr)
	}
	p := &process{user: user, done: make(chan struct{}), letGo: make(chan struct{}), waited: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.waited)
		if !keep {
			// A child is tied to the thread that started it, so the thread has to live as long as the child: it is
			// never unlocked and ends with the goroutine.
			runtime.LockOSThread()
		}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		if keep {
			p.poll()
			_ = cmd.Process.Release()
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		<-p.waited
		return nil, err
	}
	return p, nil
}

// poll waits for a process in such a way that the waiting can be given up.
func (p *process) poll() {
	tick := time.NewTicker(processEvery)
	defer tick.Stop()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
		if pid == p.pid || err != nil && !errors.Is(err, syscall.EINTR) {
			p.err = fmt.Errorf("exit status %d", status.ExitStatus())
			if status.Signaled() {
				p.err = fmt.Errorf("signal: %v", status.Signal())
			}
			close(p.done)
			return
		}
		select {
		case <-p.letGo:
			return
		case <-tick.C:
		}
	}
}

// detach lets go of a process that is kept.
func (p *process) detach() {
	close(p.letGo)
	<-p.waited
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process, if it has not ended.
func (p *process) signal(sig syscall.Signal) {
	if !p.ended() {
		_ = syscall.Kill(p.pid, sig) // it may end meanwhile
	}
}

// endGroup kills a program that runs servers of its own, as initdb does. What it runs, in the same process group, then finds
// the end of its input and ends in good order; only so does no shared memory stay, since a server may have made some that it
// has not attached yet. What has not ended in time is killed as well.
func (p *process) endGroup(ctx context.Context) error {
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may end meanwhile
	<-p.done
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	tick := time.NewTicker(processEvery)
	defer tick.Stop()
	for slices.ContainsFunc(group(p.pid), alive) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			left, err := segments(group(p.pid), p.user)
			_ = syscall.Kill(-p.pid, syscall.SIGKILL)
			errs := []error{fmt.Errorf("process group %d: %w", p.pid, ctx.Err()), err}
			for _, s := range left {
				errs = append(errs, s.remove(p.user))
			}
			return errors.Join(errs...)
		}
	}
	return nil
}

// killAll kills the process and its children, and returns when they are gone, with the shared memory that they leave.
func (p *process) killAll(ctx context.Context) ([]segment, error) {
	if p.ended() {
		return nil, nil
	}
	family, _ := p.freeze() // it may end meanwhile
	family = append(family, p.pid)
	left, unknown := segments(family, p.user)
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return left, errors.Join(unknown, ctx.Err())
	}
	tick := time.NewTicker(processEvery)
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
