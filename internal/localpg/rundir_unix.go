//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	dirPrefix   = "kiloshard-pg-"
	ownerFile   = "owner"
	runningFile = "running"
)

// runDir is the directory of one server: its data, its log, and two locked files. The owner process holds the lock of the
// owner file, and the kernel releases it when the owner dies; a server that is kept has no owner file. Every process of the
// server inherits the lock of the running file, and the kernel releases that one when the last of them ends.
type runDir struct {
	path    string
	owner   *os.File
	running *os.File
}

// newRunDir creates the directory of a server where the user can enter it, after removing those of dead owners.
func newRunDir(ctx context.Context, cfg Config, user identity) (_ *runDir, err error) {
	var errs []error
	for _, parent := range parents(ctx, cfg, user) {
		sweep(ctx, parent, cfg.Logger)
		dir, err := makeRunDir(ctx, parent, cfg.Keep, user)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// parents returns the directories to try.
func parents(ctx context.Context, cfg Config, user identity) []string {
	if cfg.Dir != "" {
		return []string{cfg.Dir}
	}
	var dirs []string
	if !cfg.Keep && strings.EqualFold(cfg.Settings["fsync"], "off") {
		sweep(ctx, memoryDir, cfg.Logger) // those of dead owners may be why there is no room
		if freeMemory() >= enoughMemory {
			dirs = append(dirs, memoryDir)
		}
	}
	dirs = append(dirs, os.TempDir())
	if user.credential != nil { // other users may not be able to enter root's temporary directory
		dirs = append(dirs, "/tmp", "/var/tmp")
	}
	return slices.Compact(dirs)
}

func makeRunDir(ctx context.Context, parent string, keep bool, user identity) (_ *runDir, err error) {
	if parent, err = filepath.Abs(parent); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, err
	}
	dir := &runDir{path: path}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.remove(context.WithoutCancel(ctx)))
		}
	}()
	// Postgres compares paths, and the working directory of its processes is the real path.
	if dir.path, err = filepath.EvalSymlinks(path); err != nil {
		dir.path = path
		return nil, err
	}
	if dir.running, err = lockFile(dir.path, runningFile); err != nil {
		return nil, err
	}
	if !keep {
		// The owner file comes last, so a directory that has it has the running file, too.
		if dir.owner, err = lockFile(dir.path, ownerFile); err != nil {
			return nil, err
		}
	}
	if user.credential != nil {
		if err := os.Chmod(dir.path, 0o711); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(dir.data(), 0o700); err != nil {
		return nil, err
	}
	if err := user.give(dir.data()); err != nil {
		return nil, err
	}
	return dir, user.canEnter(dir.data())
}

// lockFile creates a file and locks it. It renames the file after locking it, so no process finds it unlocked.
func lockFile(dir, name string) (*os.File, error) {
	f, err := os.CreateTemp(dir, name+"-")
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(f, os.Getpid()) // for people
	err = errors.Join(err,
		syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB),
		os.Rename(f.Name(), filepath.Join(dir, name)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *runDir) data() string { return filepath.Join(d.path, "data") }

func (d *runDir) logPath() string { return filepath.Join(d.path, "server.log") }

func (d *runDir) openLog() (*os.File, error) {
	return os.OpenFile(d.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// logFrom returns the log from an offset on, at most its last 64 KiB.
func (d *runDir) logFrom(offset int64) string {
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

// remove removes the directory and then closes the locked files. It retries, since a process that was just killed may
// still create a file.
func (d *runDir) remove(ctx context.Context) error {
	tick := time.NewTicker(processEvery)
	defer tick.Stop()
	err := os.RemoveAll(d.path)
	for range 50 {
		if err == nil || ctx.Err() != nil {
			break
		}
		<-tick.C
		err = os.RemoveAll(d.path)
	}
	for _, f := range []*os.File{d.owner, d.running} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
