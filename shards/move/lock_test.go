package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
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
	if _, err := move.Resume(t.Context(), b.cfg.Config); !errors.Is(err, move.ErrBusy) {
		t.Errorf("got %v, expected ErrBusy", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Error(err)
	}
}

// A transaction that has written elsewhere on the host keeps Postgres from making a slot. The move says so, and waits for as long as it may.
func TestOlderTransaction(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"publish: published", "copy: begun"} {
		b := setup(t)
		b.exec(0, fill)
		older := b.connect(0)
		patient, patience := context.WithCancel(t.Context())
		defer patience()
		want, said := fmt.Sprintf("process %d, idle in transaction", older.PgConn().PID()), false
		cfg := b.cfg
		cfg.Events = func(e progress.Event) {
			if point(e) == at {
				if _, err := older.Exec(t.Context(), "begin; select pg_current_xact_id()"); err != nil {
					t.Error(err)
				}
			}
			if strings.Contains(e.What, "waits for an older transaction of ") && strings.Contains(e.What, want) {
				said = true
				patience()
			}
		}
		if _, err := move.Run(patient, cfg); err == nil || !said {
			t.Errorf("%s: got %v, expected that it waits for %s", at, err, want)
		}
		cfg.RetryLimit = time.Millisecond
		const refused = "no slot on pg-a within 1ms: an older transaction of "
		_, err := move.Resume(t.Context(), cfg.Config)
		for err != nil && strings.Contains(err.Error(), refused) && !strings.Contains(err.Error(), want) { // that of another test on the same server
			_, err = move.Resume(t.Context(), cfg.Config)
		}
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: got %v, expected %s", at, err, want)
		}
		if _, err := older.Exec(t.Context(), "rollback"); err != nil {
			t.Fatal(err)
		}
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Errorf("%s: %v", at, err)
		}
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

// After a try of a cutover that has failed the mover leaves no transaction open on the target, which whoever makes a slot there would wait for.
func TestFailedTryLeavesTargetFree(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		t.Run(fmt.Sprintf("offline %t", offline), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill)
			b.cfg.Offline, b.cfg.LockTimeout = offline, time.Minute // a transaction that is older is waited for without locks
			reader := b.connect(0)
			defer reader.Close(context.Background())
			read := func(statements string) {
				if _, err := reader.Exec(t.Context(), statements); err != nil {
					t.Error(err)
				}
			}
			tell, open, tried := b.cfg.Events, false, false
			b.cfg.Events = func(e progress.Event) {
				tell(e)
				switch p := point(e); {
				case p == "cutover: begun":
					open = true
					read(`begin; select from shard_00001.photos`)
				case p == "cutover: tries again":
					tried = true
					b.equal("open transactions", b.text(1, `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'kiloshard move' and xact_start is not null and backend_type = 'client backend'`), "0")
					if open {
						open = false
						read(`commit`)
					}
				case open && p == "cutover: waits": // on a busy machine it is old by now
					read(`commit; begin; select from shard_00001.photos`)
				}
			}
			if _, err := move.Run(t.Context(), b.cfg); err != nil {
				t.Fatal(err)
			}
			if !tried {
				t.Error("no try has failed, so the test proves nothing")
			}
			b.served("pg-b", "at last")
			b.clean()
		})
	}
}
