package move_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/move"
)

// afterWait makes a transaction that a cutover on a host waits for, and has statements run when it begins to wait, before the transaction
// ends.
func (b *bundle) afterWait(host int, statements string) {
	holder := b.connect(host)
	b.t.Cleanup(func() { _ = holder.Close(context.Background()) })
	if _, err := holder.Exec(b.t.Context(), `begin; select from shard_00001.events where n = 1 for update; select pg_sleep(0.5)`); err != nil {
		b.t.Fatal(err)
	}
	tell, done := b.cfg.Events, false
	b.cfg.Events = func(e move.Event) {
		tell(e)
		if done || !strings.HasPrefix(e.What, "waits for a transaction of process ") {
			return
		}
		done = true
		if err := b.try(host, statements); err != nil {
			b.t.Error(err)
		}
		if _, err := holder.Exec(b.t.Context(), `rollback`); err != nil {
			b.t.Error(err)
		}
	}
	b.t.Cleanup(func() {
		if !done {
			b.t.Error("the cutover did not wait")
		}
	})
}

// copied begins a move and leaves it before its cutover.
func (b *bundle) copied(offline bool) {
	if b.cfg.Offline = offline; offline {
		b.interrupted("schema: made")
	} else {
		b.interrupted("copy: copied")
	}
}

// What somebody changes by hand while a cutover waits for a transaction is seen before the shard is fenced.
func TestChangedWhileCutoverWaits(t *testing.T) {
	t.Parallel()
	for i, change := range []string{
		`create index by_hand on shard_00001.photos (mood)`, `alter table shard_00001.photos alter title set default 'by_hand'`, `comment on column shard_00001.likes.who is 'by_hand'`,
		`create function shard_00001.by_hand() returns int language sql as 'select 1'`, `create table shard_00001.by_hand (n int primary key)`, `alter type shard_00001.mood add value 'by_hand'`,
		`create sequence shard_00001.by_hand`, `drop view shard_00001.glad; create view shard_00001.glad as select 1 as by_hand`,
	} {
		b := setup(t)
		b.exec(0, fill)
		b.copied(i%2 == 1)
		b.afterWait(0, change)
		_, err := move.Resume(t.Context(), b.cfg)
		var structure *move.StructureError
		if !errors.As(err, &structure) || !strings.Contains(err.Error(), "by_hand") && !strings.Contains(err.Error(), "glad") {
			t.Errorf("%s: got %v", change, err)
		}
		b.served("pg-a", "after "+change)
		if _, err := move.Abort(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		b.clean()
	}
}

// Grants that are made, views that are refreshed, and tables that are emptied, while a cutover waits, are no reason not to move.
func TestGrantedWhileCutoverWaits(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, fill+`create materialized view counted as select count(*) as n from likes`)
		b.copied(offline)
		b.afterWait(0, `grant update on shard_00001.photos to pg_monitor; grant execute on function shard_00001.next_id() to pg_monitor; truncate shard_00001.likes; refresh materialized view shard_00001.counted`)
		if _, err := move.Resume(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		b.equal("grants", b.text(1, `select concat_ws(' ', has_table_privilege('pg_monitor', 'shard_00001.photos', 'update'), (select proacl::text ~ 'pg_monitor' from pg_proc where oid = 'shard_00001.next_id()'::regprocedure))`), "t t")
		b.equal("likes", b.text(1, `select concat_ws(' ', (select count(*) from shard_00001.likes), n) from shard_00001.counted`), "0 0")
		b.clean()
	}
}

// A shard that is changed while its way back waits for a transaction stays.
func TestChangedWhileRollbackWaits(t *testing.T) {
	t.Parallel()
	b := movedWithWayBack(t, "")
	b.afterWait(1, `create index by_hand on shard_00001.photos (mood)`)
	if _, err := move.Rollback(t.Context(), b.cfg); !errors.Is(err, move.ErrNoWayBack) {
		t.Errorf("got %v", err)
	}
	b.served("pg-b", "after the rollback that failed")
	if _, err := move.Abort(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.exec(1, `drop index shard_00001.by_hand`)
	if _, err := move.Rollback(t.Context(), b.cfg); err != nil {
		t.Error(err)
	}
	b.clean()
}
