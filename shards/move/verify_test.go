package move_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A byte of a large shard that is flipped at any time before the fence is found, and the shard does not move.
func TestFlippedByteOfLargeShard(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct{ after, at string }{
		"before the last pass": {"", "cutover: compared"},
		"after the last pass":  {"cutover: compared", "cutover: caught up"},
		"while writers wait":   {"cutover: compared", "cutover: locked"},
		"with a pass too slow": {"", "cutover: compared"},
		"at a rate":            {"", "copy: caught up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill)
			cfg := b.cfg
			cfg.VerifyUnderFence, cfg.VerifyPause = 1, time.Hour
			if name == "at a rate" {
				cfg.VerifyPause, cfg.Rate = 1, 1e9
			}
			slow := name == "with a pass too slow"
			if slow {
				cfg.VerifyPause = 1
			}
			after, flipped := at.after == "", false
			cfg.Events = func(e progress.Event) {
				b.cfg.Events(e)
				switch p := point(e); {
				case slow && p == "cutover: comparing": // a pass may take half as long as this
					slow = false
					b.lockFor(10*time.Second, 1, "shard_00001.photos")
				case !after && strings.HasPrefix(p, at.after):
					after = true
				case after && !flipped && p == at.at:
					flipped = true
					b.exec(1, asReplica+`update shard_00001.photos set title = 'phoTo 7' where title = 'photo 7'`)
				}
			}
			_, err := move.Run(t.Context(), cfg)
			var rows *move.RowsError
			if !errors.As(err, &rows) || !strings.HasPrefix(rows.Differences[0], "photos: 1000 rows on both") {
				t.Errorf("got %v", err)
			}
			b.exec(0, `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
			b.equal("host", b.load().Host(1).Name, "pg-a")
			b.exec(1, asReplica+`update shard_00001.photos set title = 'photo 7' where title = 'phoTo 7'`)
			cfg.Events = b.cfg.Events
			if _, err := move.Resume(t.Context(), cfg.Config); err != nil {
				t.Fatal(err)
			}
			b.served("pg-b", "at last")
			b.clean()
		})
	}
}

// lockFor locks a table on a host, and returns at once.
func (b *bundle) lockFor(d time.Duration, host int, table string) {
	b.t.Helper()
	conn := b.connect(host)
	if _, err := conn.Exec(b.t.Context(), `begin; lock `+table); err != nil {
		b.t.Fatal(err)
	}
	time.AfterFunc(d, func() { conn.Close(context.Background()) })
}

// While rows are compared as of one moment, transactions that read go on: only the fence has to wait for them.
func TestReaderBesideComparison(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.cfg.VerifyUnderFence, b.cfg.LockTimeout = 1, time.Minute // a transaction that is older is waited for without locks
	reader := b.connect(0)
	defer reader.Close(context.Background())
	read := func(statements string) {
		if _, err := reader.Exec(t.Context(), statements); err != nil {
			t.Error(err)
		}
	}
	tell, compared, open := b.cfg.Events, false, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		switch p := point(e); {
		case p == "cutover: begun":
			open = true
			read(`begin; select from shard_00001.photos`)
		case open && p == "cutover: comparing":
			compared = true
		case open && p == "cutover: tries again":
			open = false
			read(`select from shard_00001.events; commit`)
		case open && p == "cutover: waits": // on a busy machine it is old by now
			read(`commit; begin; select from shard_00001.photos`)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if !compared || open {
		t.Errorf("compared beside a reader: %t, its transaction is still open: %t", compared, open)
	}
	b.served("pg-b", "at last")
	b.clean()
}

// A large shard moves while services write to it, and its last changes are compared under the fence.
func TestLargeShardUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create unlogged table shard_00001.fast (n int); insert into shard_00001.fast values (7)`)
	c := b.crowd(t, returning, inTx, reading(`select count(*) from events`))
	b.cfg.VerifyUnderFence, b.cfg.VerifyPause = 1, time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("unlogged rows", b.text(1, `select sum(n) from shard_00001.fast`), "7")
	c.some("calls after the move")
	c.end(b, 1)
	b.clean()
}

// After the switch the rows that nobody has changed since are compared with what was fenced, until that is dropped.
func TestVerifyAfterSwitch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create table named (n int primary key, t regclass, of regtype[]); insert into named values (1, 'photos', '{mood,int}')`)
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.exec(1, `update shard_00001.photos set title = 'new' where title = 'photo 8'; delete from shard_00001.events where n = 3; insert into shard_00001.photos (title) values ('more')`)
	b.cfg.Map = b.load()
	report, err := move.Verify(t.Context(), b.cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	b.equal("compared", report.Done.String(), "1")
	old := b.text(0, `select nspname from pg_namespace where nspname ~ '^shard_00001__moved'`)
	b.exec(0, `update `+old+`.photos set title = 'phoTo 7' where title in ('photo 7', 'photo 8')`)
	_, err = move.Verify(t.Context(), b.cfg.Config)
	var rows *move.RowsError
	if !errors.As(err, &rows) || rows.Differences[0] != "photos: 1 rows on pg-b that nobody has changed since the move are not those of pg-a" {
		t.Errorf("got %v", err)
	}
}

// Moves of a shard that went there and back are compared one after another: they would wait for each other's locks.
func TestVerifyThereAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	for _, to := range []string{"pg-b", "pg-a"} {
		b.cfg.Map, b.cfg.To = b.load(), to
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg.Map = b.load()
	if report, err := move.Verify(t.Context(), b.cfg.Config); err != nil || report.Done.String() != "1" {
		t.Errorf("got %s, %v", report.Done, err)
	}
}
