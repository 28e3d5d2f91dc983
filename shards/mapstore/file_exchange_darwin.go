package mapstore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchangeFiles has two files change places. The error wraps errors.ErrUnsupported where the file system cannot do that.
func exchangeFiles(a, b string) error {
	err := unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
