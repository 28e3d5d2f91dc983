package move_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A TRUNCATE of a table that an unlogged one refers to is applied to the copy, where the unlogged table gets its foreign keys with its rows.
func TestTruncatedUnderUnlogged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, large+`
		create table albums (n int primary key, up int references albums, m serial);
		create table emptied (n int);
		create function note() returns trigger language plpgsql as 'begin insert into shard_00001.emptied values (1); return null; end';
		create trigger note after truncate on albums execute function note();
		create unlogged table drafts (n int primary key, album int references albums, constraint again foreign key (n) references drafts deferrable initially deferred);
		create unlogged table views (draft int references drafts, album int);
		alter table views add constraint late foreign key (album) references albums on delete cascade not valid;
		comment on constraint late on views is 'it''s late';
		create table parts (n int primary key, album int) partition by range (n); create table parts_1 partition of parts for values from (0) to (10);
		create unlogged table parts_2 partition of parts for values from (10) to (20); alter table parts_2 add constraint own foreign key (album) references albums;
		insert into albums values (1, 1), (2, 1); insert into drafts values (1, 1); insert into views values (1, 1); insert into parts values (1, 1), (11, 1)`)
	b.while(t, "photos", 10e6, func() {
		b.exec(0, `set lock_timeout = '1s'; truncate shard_00001.albums restart identity cascade; insert into shard_00001.albums values (3); insert into shard_00001.drafts values (3, 3)`)
	})
	// Each try of the cutover but the last one fails.
	tell, failed := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if e.Kind == progress.Locked && !failed {
			failed = true
			b.exec(0, `select pg_terminate_backend(pid) from pg_locks where relation = 'shard_00001.drafts'::regclass and mode = 'AccessExclusiveLock'`)
		}
	}
	cfg := b.cfg
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "terminating connection") {
		t.Errorf("a cutover whose session was ended: got %v", err)
	}
	b.exec(0, `truncate shard_00001.albums cascade; insert into shard_00001.albums values (4); insert into shard_00001.drafts values (4, 4); insert into shard_00001.parts values (14, 4)`)
	cfg.Events = tell
	if _, err := move.Resume(t.Context(), cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(1, `select concat_ws(' ', (select string_agg(concat(n, m), ' ') from shard_00001.albums), (select string_agg(concat(n, album), ' ') from shard_00001.drafts), (select count(*) from shard_00001.emptied), (select string_agg(concat(n, album), ' ' order by n) from shard_00001.parts))`), "42 44 2 11 144")
	const keys = `select string_agg(concat_ws(' ', conname, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint')), '; ' order by conname) from pg_constraint where contype = 'f' and conrelid = any ('{shard_00001.drafts,shard_00001.views,shard_00001.parts_2}'::regclass[])`
	b.equal("foreign keys", b.text(1, keys),
		"again FOREIGN KEY (n) REFERENCES shard_00001.drafts(n) DEFERRABLE INITIALLY DEFERRED; drafts_album_fkey FOREIGN KEY (album) REFERENCES shard_00001.albums(n); "+
			"late FOREIGN KEY (album) REFERENCES shard_00001.albums(n) ON DELETE CASCADE NOT VALID it's late; own FOREIGN KEY (album) REFERENCES shard_00001.albums(n); views_draft_fkey FOREIGN KEY (draft) REFERENCES shard_00001.drafts(n)")
	b.clean()
}

// One of a table that a partitioned one refers to is refused by the target: this is said before, and the move can be taken back and tried again.
// On the way back it is applied.
func TestTruncatedUnderPartitioned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`
		create table albums (n int primary key, m serial); create table parts (n int references albums, k int, primary key (n, k)) partition by range (n); create table other (n int primary key references albums);
		create table parts_1 partition of parts for values from (0) to (100) partition by hash (k); create table parts_1_0 partition of parts_1 for values with (modulus 1, remainder 0);
		create table parts_2 partition of parts for values from (100) to (200);
		create table notes (n int, k int, primary key (n, k), foreign key (n, k) references parts) partition by list (k); create table notes_1 partition of notes for values in (1); create table notes_rest partition of notes default;
		insert into albums values (1), (100); insert into parts values (1, 1), (100, 1); insert into notes values (100, 1); insert into other values (1)`)
	tell, said := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		said = said || strings.HasPrefix(e.What, "note: pg-a: a TRUNCATE … CASCADE of shard_00001.albums, to which partitioned table shard_00001.parts refers, is refused by the target")
		if point(e) == "copy: copied" {
			b.exec(0, `truncate shard_00001.albums cascade; insert into shard_00001.albums values (2), (102); insert into shard_00001.parts values (2, 1), (102, 1)`)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); !said || err == nil || !strings.Contains(err.Error(), "shard_00001.albums, to which partitioned table shard_00001.parts refers, or of shard_00001.parts, to which") || !strings.HasSuffix(err.Error(), ", takes move abort, and another move") {
		t.Errorf("said %t, got %v", said, err)
	}
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.served("pg-a", "after the abort")
	b.clean()

	b.cfg.Events, b.cfg.RollbackFor = tell, time.Hour
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	const all = `select concat_ws(' ', (select string_agg(concat(n, m), ' ' order by n) from shard_00001.albums), (select string_agg(n::text, ' ' order by n) from shard_00001.parts), (select count(*) from shard_00001.other), (select string_agg(n::text, ' ') from shard_00001.notes), (select count(*) from shard_00001.likes))`
	b.equal("rows after the move", b.text(1, all), "23 1024 2 102 0 1000")
	b.exec(1, `insert into shard_00001.other values (2); insert into shard_00001.notes values (2, 1); truncate shard_00001.parts cascade; insert into shard_00001.parts values (2, 1), (102, 1); insert into shard_00001.notes values (2, 1); truncate shard_00001.albums restart identity cascade; insert into shard_00001.albums values (3), (103); insert into shard_00001.parts values (3, 1), (103, 1); insert into shard_00001.notes values (103, 1)`)
	b.cfg.Map = b.load()
	if _, err := move.Rollback(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("rows after the rollback", b.text(0, all), "31 1032 3 103 0 103 1000")
	b.clean()
}
