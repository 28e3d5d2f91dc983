//go:build unix

package rundir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/process"
)

const (
	prefix      = "kiloshard-pg-" // of a directory's name
	ownerFile   = "owner"
	runningFile = "running"
	dataDir     = "data"
)

// Dir is the directory of one server: its data, its log, and two locked files. The owner process holds the lock of the
// owner file, and the kernel releases it when the owner dies; a directory that is kept has no owner file. Every process of the
// server inherits the lock of the running file, and the kernel releases that one when the last of them ends.
type Dir struct {
	Path    string
	Running *os.File // for the server's first process to inherit

	owner *os.File
}

func create(ctx context.Context, parent string, keep bool, user process.User) (_ *Dir, err error) {
	if parent, err = filepath.Abs(parent); err != nil {
		return nil, err
	}
	// Postgres compares paths, and the working directory of its processes is the real path.
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	dir := &Dir{Path: path}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if dir.Running, err = lockNew(dir.Path, runningFile); err != nil {
		return nil, err
	}
	if !keep {
		// The owner file comes last, so a directory that has it has the running file, too.
		if dir.owner, err = lockNew(dir.Path, ownerFile); err != nil {
			return nil, err
		}
	}
	if user.IsOther() {
		if err := os.Chmod(dir.Path, 0o711); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(dir.Data(), 0o700); err != nil {
		return nil, err
	}
	if err := user.Give(dir.Data()); err != nil {
		return nil, err
	}
	return dir, user.Try("enter "+dir.Data(), dir.Data(), "/bin/sh", "-c", ":")
}

// lockNew creates a file and locks it. It renames the file after locking it, so no process finds it unlocked.
func lockNew(dir, name string) (*os.File, error) {
	f, err := os.CreateTemp(dir, name+"-")
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f, os.Getpid()) // for people
	err = errors.Join(err, lock(f), os.Rename(f.Name(), filepath.Join(dir, name)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockOld opens and locks a file. The error is syscall.EWOULDBLOCK if another process has locked it.
func lockOld(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Data returns the data directory, which belongs to the server's user.
func (d *Dir) Data() string { return filepath.Join(d.Path, dataDir) }

func (d *Dir) logPath() string { return filepath.Join(d.Path, "server.log") }

// OpenLog opens the log to append to it.
func (d *Dir) OpenLog() (*os.File, error) {
	return os.OpenFile(d.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// LogFrom returns the log from an offset on, at most its last 64 KiB.
func (d *Dir) LogFrom(offset int64) string {
	const most = 64 << 10
	f, err := os.Open(d.logPath())
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		offset = max(offset, info.Size()-most)
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, offset, most))
	return string(text)
}

// Remove removes the directory and then closes the locked files. It retries, since a process that was just killed may
// still create a file.
func (d *Dir) Remove(ctx context.Context) error {
	const attempts, interval = 50, 20 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	err := os.RemoveAll(d.Path)
	for range attempts {
		if err == nil || ctx.Err() != nil {
			break
		}
		<-tick.C
		err = os.RemoveAll(d.Path)
	}
	for _, f := range []*os.File{d.owner, d.Running} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
