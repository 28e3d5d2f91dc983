package views_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestFullDisk fills the disk of the database, to the last byte, before views are made, and after those of the first shard. The command fails with the error of
// Postgres, and the old tables can be read. Another run makes the views once there is room, and the way back leaves everything as it was.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := pgtest.SmallDisk(t)
	server := shardtest.OwnServer(t)
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: pgtest.CreateDatabaseIn(t, server, disk, "photos")}, service, func(*shards.Config) {})
	before := b.dump()
	ballast := filepath.Join(disk, "ballast")
	full := func(what string, work func() error) (ended bool) {
		t.Helper()
		err := work()
		if err != nil && !pgtest.IsFull(err) {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s with a full disk: %v", what, err)
		if got := b.run("select count(*) from photos")[0]; got != "1000" {
			t.Errorf("%s photos, expected 1000", got)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, filler := range []filler{{t, ballast, 0}, {t, ballast, 1}} {
		if filler.after == 0 {
			filler.fill()
		}
		cfg := b.config()
		cfg.PerHost, cfg.Progress = 1, filler
		if full("views", func() error { _, err := views.Make(t.Context(), cfg); return err }) {
			t.Error("views were made on a full disk")
		}
		b.make()
		value(t, b.shard(b.router(), 7), "insert into albums (user_id) values (7) returning user_id")
		filler.fill()
		back := func() error { _, err := views.Back(t.Context(), views.BackConfig{Map: b.m}); return err }
		if !full("back", back) {
			if err := back(); err != nil && !errors.Is(err, ledger.ErrNone) {
				t.Fatal(err)
			}
		}
		if after := b.dump(); after != before {
			t.Fatalf("before\n%s\nafter\n%s", before, after)
		}
	}
	if got := b.run("select count(*) from albums where user_id = 7")[0]; got != "6" {
		t.Errorf("user 7 has %s albums, expected 6", got)
	}
}

// filler fills a disk when some shards have views.
type filler struct {
	t     *testing.T
	file  string
	after int
}

func (f filler) fill() { pgtest.UseUp(f.t, f.file, 0) }

func (f filler) Begin(string, int) {}

func (f filler) Finished(_ string, n shards.Number, err error, _ time.Duration) {
	if int(n)+1 == f.after && err == nil {
		f.fill()
	}
}

func (f filler) End() {}
