//go:build !unix

package mapstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

func lockFile(context.Context, string) (func(), error) {
	return nil, fmt.Errorf("changing a map in a file on this system: %w", errors.ErrUnsupported)
}

func keepOwner(string, fs.FileInfo) {}
