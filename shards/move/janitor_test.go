package move_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// What moves have left behind and no move needs is removed: nothing that a move needs, and nothing that no ledger knows.
func TestJanitor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.RollbackFor = time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	all, err := move.Status(t.Context(), b.load())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	id := all[0].ID
	name := "kiloshard_move_00001_" + id
	leave := func(id string) {
		b.exec(0, `select pg_create_logical_replication_slot('kiloshard_move_00001_`+id+`', 'pgoutput'); create publication kiloshard_move_00001_`+id+`; create schema shard_00001__fence_`+id)
	}
	leave(id)
	leave("0123abcd") // in no ledger
	b.exec(0, `create publication kiloshard_move_mine; create schema shard_00001__moved_by_me; create schema shard_00001__moved_0123abcd`)
	b.exec(1, `create subscription `+name+` connection 'host=127.0.0.1 dbname=nowhere' publication x with (connect = false)`)
	// A move under way keeps what it has made.
	cfg := b.cfg
	cfg.Map, cfg.Shards, cfg.RollbackFor = b.m, shards.SetOf(0), 0
	b.cfg = cfg
	stopped(t, b, "copy: copied", move.Run)

	c, err := move.Clean(t.Context(), b.m, shards.Set{})
	if err != nil {
		t.Fatal(err)
	}
	b.equal("cleaned", c.Done.String(), "")
	b.equal("open", c.Open.String(), "1")
	want := []string{"pg-b: subscription " + name, "pg-a: slot " + name, "pg-a: publication " + name, "pg-a: fence shard_00001__fence_" + id}
	if !slices.Equal(c.Removed, want) {
		t.Errorf("removed %q, expected %q", c.Removed, want)
	}
	b.equal("unknown", strings.Join(c.Unknown, ", "), "pg-a: slot kiloshard_move_00001_0123abcd, pg-a: publication kiloshard_move_00001_0123abcd, pg-a: fence shard_00001__fence_0123abcd, pg-a: schema shard_00001__moved_0123abcd")
	if _, err := move.Resume(t.Context(), cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = b.load()
	// The way back is closed for a shard that is named, and what is behind it goes.
	c, err = move.Clean(t.Context(), b.m, shards.SetOf(1))
	if err != nil {
		t.Fatal(err)
	}
	b.equal("cleaned", c.Done.String(), "1")
	b.exec(0, `select pg_drop_replication_slot('kiloshard_move_00001_0123abcd'); drop publication kiloshard_move_00001_0123abcd, kiloshard_move_mine; drop schema shard_00001__fence_0123abcd, shard_00001__moved_by_me, shard_00001__moved_0123abcd`)
	b.clean()
}
