//go:build unix

package mapstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is between attempts to get a lock.
const lockPause = 10 * time.Millisecond

// lockFile waits until nobody else has the lock of a file, and makes the file if it is not there. The lock goes with the
// process that holds it.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = file.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		timer := time.NewTimer(lockPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(fmt.Errorf("lock %s: somebody else holds it: %w", path, ctx.Err()), file.Close())
		case <-timer.C:
		}
	}
}

// keepOwner gives a file the owner of the one that it will replace, if this user may.
func keepOwner(path string, old fs.FileInfo) {
	if stat, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(path, int(stat.Uid), int(stat.Gid))
	}
}
