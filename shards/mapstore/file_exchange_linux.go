package mapstore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchangeFiles has two files change places. The error wraps errors.ErrUnsupported where the file system cannot do that.
func exchangeFiles(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
