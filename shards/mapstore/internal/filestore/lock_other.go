//go:build !unix

package filestore

import (
	"context"
	"errors"
	"fmt"
)

func lockFile(context.Context, string) (func(), error) {
	return nil, fmt.Errorf("changing a map in a file on this system: %w", errors.ErrUnsupported)
}
