package prove_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A target whose disk is full, for its WAL as well, may go down. The shard stays where it is, and moves once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	c := start(t, map[string]localpg.Config{"pg-b": {Dir: disk}})
	c.fill("pg-a")
	w := c.callers()
	cfg := c.config("pg-a", "pg-b")
	ballast, tell := filepath.Join(disk, "ballast"), cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "copy: begun" {
			useUp(t, ballast)
		}
	}
	_, err := move.Run(t.Context(), cfg)
	t.Log("the mover: ", err)
	if err == nil {
		t.Error("a shard of 18 MB came to a disk with room for 4")
	}
	w.some()
	c.served("pg-a")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.restart("pg-b")
	if home := c.endWell("pg-a", "pg-b", false); home != "pg-b" {
		t.Errorf("the shard is on %s", home)
	}
	w.some()
	c.whole("pg-b")
	w.check("pg-b")
}

// smallDisk returns a file system of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	err = syscall.Mount("none", dir, "tmpfs", 0, "size=200m,mode=1777")
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("only root may mount a small file system")
	}
	if err != nil {
		t.Fatal("mount:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error("unmount:", err)
		}
	})
	return dir
}

// useUp fills a file system with a file, and then leaves 4 MB.
func useUp(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	size := int64(0)
	for {
		n, err := f.Write(piece)
		size += int64(n)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size - 4<<20); err != nil {
		t.Fatal(err)
	}
}
