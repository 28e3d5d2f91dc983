package rows_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestFullDisk fills the disk of the database, to the last byte, while rows move there and back, and clients write. The command fails with the error of Postgres, and
// so do clients. Another run goes on once there is room, there or back: for the way back a megabyte is enough, and it frees what the copy took. So it is with the
// end of the adoption. make prove fills the disk at more events.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := pgtest.SmallDisk(t)
	server := shardtest.OwnServer(t)
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: pgtest.CreateDatabaseIn(t, server, disk, "photos")}, 4, service, decisions)
	b.faults = true
	before := b.dump()
	all := b.write(3)
	ballast := filepath.Join(disk, "ballast")
	full := func(what string, kind rows.Kind) {
		t.Helper()
		used := false
		use := func() {
			used = true
			pgtest.UseUp(t, ballast, 0)
		}
		if kind == "" {
			use()
		}
		err := b.do(what, func(e rows.Event) {
			if e.Kind == kind && !used {
				use()
			}
		})
		if t.Logf("%s with a disk that is full from %q on: %v", what, kind, err); !used || !pgtest.IsFull(err) && (err != nil || what == "tables") {
			t.Errorf("%s: the disk was filled at %q: %v, got %v", what, kind, used, err)
		}
	}
	room := func() {
		t.Helper()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	well := func(what string) {
		t.Helper()
		if err := b.do(what, nil); err != nil {
			t.Fatal(err)
		}
	}
	back := func() {
		t.Helper()
		well("back")
		if after := b.dump(); after != before {
			t.Fatalf("the structure has changed: %s", difference(before, after))
		}
		if left := b.run("select nspname from pg_namespace where nspname ~ '^kiloshard_adopt_'"); len(left) > 0 {
			t.Fatalf("schemas of the copy are left: %q", left)
		}
	}
	there, again, quiet := []rows.Kind{"", rows.Copied, rows.Cutover}, []rows.Kind{""}, []rows.Kind{rows.Cutover}
	if pgtest.Full() {
		quiet, again = []rows.Kind{rows.Closed, rows.Made, rows.Copying, rows.Copied, rows.Compared, rows.Cutover}, []rows.Kind{"", rows.Compared, rows.Reverted}
		there = append(there[:1], quiet...)
	}
	for _, kind := range there {
		all.await(t, 20)
		full("tables", kind)
		if kind == "" || kind == rows.Cutover || pgtest.Full() {
			err := b.do("back", nil)
			if t.Logf("back with a full disk: %v", err); err != nil && !pgtest.IsFull(err) {
				t.Errorf("back with a full disk: %v", err)
			}
			room()
			back()
		} else {
			room()
		}
	}
	well("tables")
	for _, kind := range again {
		full("back", kind)
		room()
	}
	back()
	all.end()
	all.check(t)
	t.Logf("%d transactions were committed, and %d met the full disk", all.commits.Load(), all.full.Load())
	if all.full.Load() == 0 {
		t.Error("no client met the full disk")
	}
	for _, kind := range quiet { // without clients that use what becomes free
		full("tables", kind)
		if size, err := os.Stat(ballast); err != nil || os.Truncate(ballast, size.Size()-1<<20) != nil {
			t.Fatal(err)
		}
		back()
		room()
	}
	all.check(t)
	well("tables")
	full("finish", "")
	room()
	well("finish")
	all.checkHistories(t, func(c *client) []string { return []string{b.m.Schema(c.shards)} })
}

// TestFullDiskOfWAL fills the disk of the server's WAL, which ends the server, while rows move there and back and clients write. Once there is room and the server
// runs another run goes on.
func TestFullDiskOfWAL(t *testing.T) {
	t.Parallel()
	disk := pgtest.SmallDisk(t)
	server := pgtest.Start(t, localpg.Config{Dir: disk, Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB", "min_wal_size": "32MB", "max_wal_size": "64MB"}})
	roomy, err := os.MkdirTemp("", "roomy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(roomy) })
	if err := os.Chmod(roomy, 0o755); err != nil { //nolint:gosec // the server has a role of its own
		t.Fatal(err)
	}
	dsn := pgtest.CreateDatabaseIn(t, server, roomy, "photos")
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: dsn}, 4, service, decisions)
	b.faults = true
	before := b.dump()
	all := b.write(3)
	ballast := filepath.Join(disk, "ballast")
	full := func(what string, kind rows.Kind) {
		t.Helper()
		all.await(t, 20)
		used := false
		err := b.do(what, func(e rows.Event) {
			if e.Kind != kind || used {
				return
			}
			used = true
			pgtest.UseUp(t, ballast, 0)
			for deadline := time.Now().Add(time.Minute); ; { // the segments that are there already are used up first
				if _, err := pgtest.Run(t.Context(), b.conn, "create temp table t (); drop table t; select pg_switch_wal()"); err != nil {
					t.Log(err)
					return
				}
				if time.Now().After(deadline) {
					t.Error("the WAL has room")
					return
				}
			}
		})
		if t.Logf("%s with a full disk: %v", what, err); err == nil || !used {
			t.Errorf("%s ended with %v", what, err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		// Not in good order: the server may be recovering, and such a shutdown was seen to take more than a minute.
		if err := errors.Join(server.Kill(t.Context()), server.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		b.conn = pgtest.Connect(t, dsn)
	}
	kinds := []rows.Kind{rows.Copied}
	if pgtest.Full() {
		kinds = []rows.Kind{rows.Closed, rows.Made, rows.Copying, rows.Copied, rows.Compared, rows.Cutover}
	}
	for _, kind := range kinds {
		full("tables", kind)
	}
	if err := b.do("tables", nil); err != nil {
		t.Fatal(err)
	}
	full("back", rows.Reverted)
	if err := b.do("back", nil); err != nil {
		t.Fatal(err)
	}
	all.await(t, 20)
	all.end()
	all.check(t)
	if after := b.dump(); after != before {
		t.Errorf("the structure has changed: %s", difference(before, after))
	}
}
