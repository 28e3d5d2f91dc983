package move_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// large is a shard whose last table by name is too large for the buffers between source, mover and target.
const large = fill + `insert into photos (title) select repeat('x', 10000) from generate_series(1, 1200);`

// while has something happen, beside the move, once the mover copies rows of a table.
func (b *bundle) while(t *testing.T, table string, rate int64, do func()) {
	t.Helper()
	b.cfg.Rate = rate
	tell, begun := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		if begun || e.Kind != progress.Copying {
			return
		}
		begun = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			eventually(t, "a copy of "+table, func() bool {
				return b.text(0, `select count(*) from pg_stat_progress_copy where datname = current_database() and command = 'COPY TO' and relid = 'shard_00001.`+table+`'::regclass`) == "1"
			})
			do()
		}()
		t.Cleanup(func() { <-done })
	}
}

// What ends the source's part of a copy is named, and the move ends with it: the target's part is only told, and would take it for a
// statement that somebody has cancelled.
func TestCopyFailsOnSource(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, large+`create table zero (n int references events)`) // the next copy empties both
		cfg := b.cfg
		b.while(t, "photos", 10e6, func() {
			b.exec(0, `select pg_terminate_backend(pid) from pg_stat_progress_copy where datname = current_database() and command = 'COPY TO'`)
		})
		b.cfg.Offline = offline
		_, err := move.Run(t.Context(), b.cfg)
		if err == nil || !strings.Contains(err.Error(), "copying photos, on pg-a: ") {
			t.Errorf("offline %t: %v", offline, err)
		}
		if _, err := move.Resume(t.Context(), cfg.Config); err != nil {
			t.Error(err)
		}
		b.served("pg-b", "after the resume")
		b.clean()
	}
}

// A table that is copied can be emptied while others are copied.
func TestTruncatedWhileCopying(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, large)
	b.while(t, "photos", 10e6, func() {
		b.exec(0, `set lock_timeout = '1s'; truncate shard_00001.events; insert into shard_00001.events (what) values ('after')`)
	})
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("events", b.text(1, `select string_agg(what, ' ') from shard_00001.events`), "after")
	b.clean()
}

// A rate does not hold up what is copied while writers wait.
func TestUnloggedAtRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create unlogged table fast (t text); insert into fast select repeat('x', 1000) from generate_series(1, 3000)`)
	b.cfg.Rate, b.cfg.MaxPause, b.cfg.RetryLimit = 1e6, time.Second, time.Minute
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(1, `select count(*) from shard_00001.fast`), "3000")
	b.clean()
}

// Whoever keeps readers out of a table that is to be copied is named.
func TestLockedBeforeCopy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`insert into events (what) select repeat('x', 10000) from generate_series(1, 1200)`)
	holder := b.connect(0)
	cfg := b.cfg
	b.while(t, "events", 10e6, func() {
		if _, err := holder.Exec(t.Context(), `begin; lock table shard_00001.photos`); err != nil {
			t.Error(err)
		}
	})
	want := fmt.Sprintf("process %d, idle in transaction", holder.PgConn().PID())
	tell, said := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		tell(e)
		said = said || e.What == "waits for a lock of "+want
	}
	b.cfg.RetryLimit = 2 * time.Second
	_, err := move.Run(t.Context(), b.cfg)
	for err != nil && strings.Contains(err.Error(), "no slot on pg-a within") { // another test on the server has an older transaction
		_, err = move.Resume(t.Context(), b.cfg.Config)
	}
	if err == nil || !strings.Contains(err.Error(), "no lock within 2s, which is held by "+want) {
		t.Errorf("got %v", err)
	}
	if !said {
		t.Error("the move did not say whom it waits for")
	}
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Resume(t.Context(), cfg.Config); err != nil {
		t.Error(err)
	}
	b.served("pg-b", "after the resume")
}

// A subscription that somebody disables, drops or enables is named, and no row is copied twice or left out.
func TestSubscriptionChanged(t *testing.T) {
	t.Parallel()
	const of = `do $$ declare s text := (select subname from pg_subscription where subdbid = (select oid from pg_database where datname = current_database())); begin
		execute format('alter subscription %I ` // one by one below
	const drop = `disable', s); execute format('alter subscription %I set (slot_name = none)', s); execute format('drop subscription %I', s); end $$`
	for _, test := range []struct{ at, does, want string }{
		{"copy: copied", `disable', s); end $$`, "somebody has disabled subscription kiloshard_move_00001_"},
		{"copy: copied", drop, "is not on pg-b any more: expected move abort"},
		{"copy: committing", `enable', s); end $$`, "somebody has enabled or dropped subscription"},
	} {
		b := setup(t)
		b.exec(0, fill+`create table keyless (n int); insert into keyless select generate_series(1, 100)`)
		cfg := b.cfg
		b.cfg.Events = func(e progress.Event) {
			cfg.Events(e)
			if point(e) == test.at {
				b.exec(1, of+test.does)
			}
		}
		if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %s: got %v", test.at, test.does, err)
		}
		_, err := move.Resume(t.Context(), cfg.Config)
		if again := test.at == "copy: committing"; again != (err == nil) {
			t.Errorf("%s, %s: resume: %v", test.at, test.does, err)
		} else if again {
			b.equal("rows", b.text(1, `select count(*) from shard_00001.keyless`), "100")
			b.clean()
			continue
		}
		if _, err := move.Abort(t.Context(), cfg.Config); err != nil {
			t.Error(err)
		}
		b.served("pg-a", "after the abort")
		b.clean()
	}
}

// What a copy that did not end has left is not there twice, whatever became of its subscription.
func TestCopiedAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create table keyless (n int); insert into keyless select generate_series(1, 100)`)
	b.interrupted("copy: copied")
	b.exec(1, `update kiloshard.moves set copied = null`) // as if the mover had died in its first steps
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(1, `select count(*) from shard_00001.keyless`), "100")
	b.clean()
}

// Settings of the target's database change nothing of what is copied.
func TestCopyDespiteSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`create table odd (n int primary key, a int[], x xml); insert into odd values (1, '{1,null}', 'text and <a/>')`)
	for _, setting := range []string{"array_nulls = off", "xmloption = document", "datestyle = 'SQL, DMY'", "extra_float_digits = -5"} {
		b.exec(1, `do $$ begin execute format('alter database %I set `+strings.ReplaceAll(setting, "'", "''")+`', current_database()); end $$`)
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.equal("rows", b.text(1, `select a::text || x::text from shard_00001.odd`), "{1,NULL}text and <a/>")
	b.clean()
}

// Keys and indexes come after the rows, but for those that something else needs. A mover that dies meanwhile leaves neither.
func TestKeysAfterRows(t *testing.T) {
	t.Parallel()
	const indexes = `select string_agg(concat_ws(' ', relname, conname, indisclustered, indisreplident, obj_description(indexrelid), obj_description(n.oid, 'pg_constraint')), E'\n' order by relname)
		from pg_index i join pg_class c on c.oid = indexrelid left join pg_constraint n on conindid = indexrelid and contype <> 'f' where relnamespace = 'shard_00001'::regnamespace`
	b := setup(t)
	b.exec(0, fill+`create table owners (id bigint primary key, name text unique, kind int); create table owned (id bigint primary key, owner bigint references owners, n int not null, exclude using btree (n with =));
		create view names as select name, kind, id from owners group by id; create unique index numbers on owned (n) include (owner); create index on owners (lower(name)); create index kinds on owners (kind) where kind > 0;
		create materialized view many as select n from owned; create unique index many_n on many (n);
		alter table owned replica identity using index numbers, cluster on numbers; comment on index numbers is 'of owned'; comment on constraint owners_name_key on owners is 'one each';
		insert into owners select i, 'owner ' || i, i from generate_series(1, 100) i; insert into owned select i, i, i from generate_series(1, 100) i; refresh materialized view many`)
	want := b.text(0, indexes)
	b.interrupted("copy: makes keys and indexes")
	b.equal("indexes before the rows", b.text(1, `select string_agg(relname, ' ' order by relname) from pg_index join pg_class c on c.oid = indexrelid where indrelid::regclass::text ~ 'own'`), "owners_pkey")
	b.equal("rows of a copy that did not end", b.text(1, `select count(*) from shard_00001.owned`), "0")
	b.exec(0, `set search_path = shard_00001; create index later on owned (owner)`)
	if _, err := move.Resume(t.Context(), b.cfg.Config); err == nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("with another index: %v", err)
	}
	b.exec(0, `drop index shard_00001.later`)
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("indexes", b.text(1, indexes), want)
	b.equal("rows", b.text(1, `select (select count(*) from shard_00001.owned) || ' ' || (select sum(n) from shard_00001.many)`), "100 5050")
	b.equal("statements that are left", b.text(1, `select keys is null from kiloshard.moves where side = 'target'`), "t")
	b.clean()
}
