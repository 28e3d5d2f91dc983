package docker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/moby/moby/client"
)

// volumes replaces the volumes of an image by directories of this machine. The zero value replaces none, and Docker makes them.
type volumes struct {
	dir   string   // contains the directories
	binds []string // of the directories, as Docker writes them
}

// makeVolumes makes the directories in parent, unless that is empty. After an error the caller removes what is returned.
func makeVolumes(ctx context.Context, docker *client.Client, imageName, parent string) (v volumes, err error) {
	if parent == "" {
		return v, nil
	}
	if os.Getuid() > 0 {
		return v, fmt.Errorf("directory %s: only root may remove what a container's server writes there: leave it out", parent)
	}
	image, err := docker.ImageInspect(ctx, imageName)
	if err != nil {
		return v, err
	}
	if image.Config == nil || len(image.Config.Volumes) == 0 {
		return v, fmt.Errorf("directory %s: the image declares no volume that it could take the place of", parent)
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return v, err
	}
	if v.dir, err = os.MkdirTemp(parent, "kiloshard-docker-"); err != nil {
		return v, err
	}
	for i, target := range slices.Sorted(maps.Keys(image.Config.Volumes)) {
		source := filepath.Join(v.dir, strconv.Itoa(i))
		if err := os.Mkdir(source, 0o755); err != nil { //nolint:gosec // the server's user in the container has to enter it
			return v, err
		}
		v.binds = append(v.binds, source+":"+target)
	}
	return v, nil
}

// remove removes the directories with all data.
func (v volumes) remove() error {
	if v.dir == "" {
		return nil
	}
	return os.RemoveAll(v.dir)
}
