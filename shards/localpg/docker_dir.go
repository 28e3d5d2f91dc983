package localpg

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// makeDir makes a directory in parent that takes the place of the image's volumes. If parent is empty, there is none, and
// Docker makes volumes.
func (c *container) makeDir(ctx context.Context, parent string) error {
	if parent == "" {
		return nil
	}
	image, err := c.docker.ImageInspect(ctx, c.image)
	if err != nil {
		return err
	}
	if image.Config == nil || len(image.Config.Volumes) == 0 {
		return errors.New("no volume is declared, and so there is nothing to keep in " + parent)
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp(parent, "kiloshard-docker-"); err != nil {
		return err
	}
	for i, target := range slices.Sorted(maps.Keys(image.Config.Volumes)) {
		source := filepath.Join(c.dir, strconv.Itoa(i))
		if err := os.Mkdir(source, 0o755); err != nil { //nolint:gosec // the server's user in the container has to enter it
			return err
		}
		c.binds = append(c.binds, source+":"+target)
	}
	return nil
}

// removeDir removes what makeDir made. What the server wrote there belongs to its user in the container.
func (c *container) removeDir() error {
	if c.dir == "" {
		return nil
	}
	err := os.RemoveAll(c.dir)
	if errors.Is(err, fs.ErrPermission) {
		return errors.Join(err, errors.New("only root may remove what a container's server wrote"))
	}
	return err
}
