package localpg

import (
	"context"
	"fmt"
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
	if os.Getuid() > 0 {
		return fmt.Errorf("directory %s: only root may remove what a container's server writes there: leave it out", parent)
	}
	image, err := c.docker.ImageInspect(ctx, c.image)
	if err != nil {
		return err
	}
	if image.Config == nil || len(image.Config.Volumes) == 0 {
		return fmt.Errorf("directory %s: the image declares no volume that it could take the place of", parent)
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

// removeDir removes what makeDir made.
func (c *container) removeDir() error {
	if c.dir == "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}
