//go:build unix

// Package daemon runs a server program as a child of this process, with a directory and a port of its own.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
	"github.com/kiloshard/kiloshard/internal/port"
)

// Daemon is one server, which may run several times, one after the other. PID and Log are safe for concurrent use; other methods
// are not.
type Daemon struct {
	User process.User
	Dir  *rundir.Dir
	Port *port.Port // nil before OnFreePort
	Keep bool       // it outlives this process

	name string            // for errors
	left []process.Segment // shared memory of a server that was killed

	mu    sync.Mutex       // guards child
	child *process.Process // nil if none runs
}

// ErrPortTaken says that another process has taken the port of the server.
var ErrPortTaken = errors.New("the server's port was taken by another process")

// New makes the directory of a server that runs the program. name is what errors call the server. The error is
// engine.ErrUnavailable if no user for servers can run the program.
func New(ctx context.Context, name, program string, cfg rundir.Config) (*Daemon, error) {
	user, err := process.ServerUser()
	if err == nil {
		err = user.Try("run "+program, "/", program, "--version")
	}
	if err != nil {
		return nil, engine.Unavailable(err)
	}
	d := &Daemon{User: user, Keep: cfg.Keep, name: name}
	d.Dir, err = rundir.New(ctx, cfg, user)
	return d, err
}

// RunToEnd runs another program as the server's user, in the data directory, and waits until it ends. It ends the program
// when ctx ends.
func (d *Daemon) RunToEnd(ctx context.Context, cmd *exec.Cmd) error {
	child, _, err := d.spawn(cmd, false)
	if err != nil {
		return err
	}
	select {
	case <-child.Done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.KillGroup(context.WithoutCancel(ctx)))
	}
	if child.Err != nil {
		return fmt.Errorf("%s: %w; its output ends with:\n%s", filepath.Base(cmd.Path), child.Err, d.Log(ctx))
	}
	return nil
}

// spawn starts a program whose output goes to the log, and returns where that begins.
func (d *Daemon) spawn(cmd *exec.Cmd, keep bool) (child *process.Process, from int64, err error) {
	out, err := d.Dir.OpenLog()
	if err != nil {
		return nil, 0, err
	}
	defer out.Close()
	if from, err = out.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.Dir.Data(), out, out
	child, err = process.Spawn(cmd, d.User, d.Dir.Running, keep)
	return child, from, err
}

// OnFreePort takes a port and calls run, and repeats that if another process has taken the port in between.
func (d *Daemon) OnFreePort(run func() error) (err error) {
	for range 10 {
		d.Port.Release()
		if d.Port, err = port.Take(); err != nil {
			return err
		}
		if err = run(); !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	return err
}

// Run starts the server and waits until it answers at the DSN. If the server ends by itself and its log contains one of the
// texts, Run returns the error for that text. After an error the server may still run.
func (d *Daemon) Run(ctx context.Context, cmd *exec.Cmd, dsn login.DSN, texts map[string]error) (version string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	child, from, err := d.spawn(cmd, d.Keep)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	d.child = child
	d.mu.Unlock()
	version, err = dsn.Wait(ctx, func(context.Context) error {
		if !child.Ended() {
			return nil
		}
		log := d.Dir.LogFrom(from)
		for text, err := range texts {
			if strings.Contains(log, text) {
				return err
			}
		}
		return fmt.Errorf("%s ended by itself (%w); its log ends with:\n%s", d.name, child.Err, login.Tail(log))
	})
	if err == nil {
		d.left = nil // a server removes what its predecessor left
	}
	return version, err
}

// Kill kills all processes of the server and waits until they are gone.
func (d *Daemon) Kill(ctx context.Context) error {
	child := d.running()
	if child == nil {
		return nil
	}
	left, err := child.Kill(ctx)
	d.left = append(d.left, left...)
	return err
}

// End signals the server to end. It kills the server if that takes longer than ctx or a minute.
func (d *Daemon) End(ctx context.Context, sig syscall.Signal) error {
	child := d.running()
	if child == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, process.ShutdownLimit)
	defer cancel()
	_ = syscall.Kill(child.PID, sig) // the process may have ended
	select {
	case <-child.Done:
		return nil
	case <-ctx.Done():
		return cleanup.Do(ctx, d.Kill)
	}
}

// Remove removes all that a server which has ended leaves.
func (d *Daemon) Remove(ctx context.Context) error {
	var errs []error
	for _, s := range d.left {
		errs = append(errs, s.Remove(d.User))
	}
	errs = append(errs, d.Dir.Remove(ctx))
	d.Port.Release()
	return errors.Join(errs...)
}

// Freeze stops all processes of the server.
func (d *Daemon) Freeze(context.Context) (err error) {
	if child := d.running(); child != nil {
		_, err = process.Freeze(child.PID)
	}
	return err
}

// Thaw lets a frozen server continue.
func (d *Daemon) Thaw(context.Context) error {
	if child := d.running(); child != nil {
		return process.Thaw(child.PID)
	}
	return nil
}

// Detach lets go of a server that is kept. Only PID and Log may be called after it.
func (d *Daemon) Detach() {
	if child := d.running(); child != nil {
		child.Detach()
	}
}

// PID returns the process ID, or 0 if the server does not run.
func (d *Daemon) PID() int {
	if child := d.running(); child != nil {
		return child.PID
	}
	return 0
}

// Log returns the last lines of the log.
func (d *Daemon) Log(context.Context) string { return login.Tail(d.Dir.LogFrom(0)) }

// running returns the child process, or nil if it has ended.
func (d *Daemon) running() *process.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.child != nil && d.child.Ended() {
		d.child = nil
	}
	return d.child
}
