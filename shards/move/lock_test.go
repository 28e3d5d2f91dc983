package move_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/sql"
)

// A role without rights that has the shard's advisory lock on both hosts holds no move up. Whoever has the lock of the version
// table does, and is named.
func TestNobodyElseHoldsUpMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, host := range b.m.Hosts() {
		nobody := pgtest.Nobody(t, host.ConnString())
		for second := range 3 {
			query := fmt.Sprintf("select pg_advisory_lock(%d, %d), pg_advisory_lock(%d, %[2]d)", sql.ShardLock, second, sql.LockClass)
			if _, err := nobody.Exec(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
	}
	owner := b.connect(0)
	if _, err := owner.Exec(t.Context(), "begin; "+sql.ShardTurn{Schema: "shard_00001"}.Lock()); err != nil {
		t.Fatal(err)
	}
	_, err := move.Run(t.Context(), b.cfg)
	if want := fmt.Sprintf("process %d, role ", owner.PgConn().PID()); !errors.Is(err, move.ErrBusy) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected ErrBusy of %q", err, want)
	}
	if _, err := owner.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Error(err)
	}
}

// Two programs do not work on one move, although neither has the advisory lock.
func TestOneMoverAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.interrupted("copy: copied")
	other := b.connect(0)
	if _, err := other.Exec(t.Context(), "set application_name = 'kiloshard move'; update kiloshard.moves set mover = pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Resume(t.Context(), b.cfg); !errors.Is(err, move.ErrBusy) {
		t.Errorf("got %v, expected ErrBusy", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Resume(t.Context(), b.cfg); err != nil {
		t.Error(err)
	}
}

// A forged mark of a fence has nobody drop a shard that is back where it was.
func TestForgedFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	rows := b.text(0, `select count(*) from shard_00001.photos`)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.load()
	back := b.cfg
	back.Map, back.To = b.m, "pg-a"
	if _, err := move.Run(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	b.load()
	b.exec(0, `create view shard_00001.kiloshard_moved as select 1`)
	if _, err := move.Clean(t.Context(), b.m, shards.Set{}); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(0, `select count(*) from shard_00001.photos`), rows)
}
