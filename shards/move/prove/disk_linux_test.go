package prove_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A target whose disk is full, for its WAL as well, may go down. The shard stays where it is, and moves once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := pgtest.SmallDisk(t)
	c := start(t, map[string]localpg.Config{"pg-b": {Dir: disk}})
	c.fill("pg-a")
	w := c.callers()
	cfg := c.config("pg-a", "pg-b")
	ballast, tell := filepath.Join(disk, "ballast"), cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if point(e) == "copy: begun" {
			pgtest.UseUp(t, ballast, 4<<20)
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
