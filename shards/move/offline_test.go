package move_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/move"
)

// A shard is copied while it is locked: no logical replication, and calls only wait. What was interrupted goes on, or is taken back.
func TestOffline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`
		create unlogged table fast (n int primary key, half numeric generated always as (n / 2.0) stored);
		insert into fast select generate_series(1, 50);
		create table hollow (); insert into hollow default values; create table bare (t text); insert into bare values (E'a\tb\\\n'), (null), ('');
		create function fail() returns trigger language plpgsql as $$ begin raise 'a trigger has run'; end $$;
		create trigger fail before insert on likes for each row execute function fail();`)
	const rows = `select count(*) || ' ' || sum(hashtext(p::text)) || ' ' || (select count(*) from shard_00001.likes) || ' ' || (select sum(half) from shard_00001.fast) ||
		(select string_agg(coalesce(t, 'null'), ',' order by t) from shard_00001.bare) from shard_00001.photos p where title <> 'load'`
	before := b.text(0, rows)
	b.cfg.Offline = true
	c := b.crowd(t, returning, begun, reading(`select count(*) from events`))
	b.interrupted("cutover: carried")
	c.some("calls after an interrupt")
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.served("pg-a", "after the abort")
	b.clean()
	b.interrupted("cutover: copied")
	slots := b.text(0, `select count(*) from pg_replication_slots where database = current_database()`)
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	c.some("calls after the move")
	c.end(b, 1)
	b.equal("slots", slots, "0")
	b.equal("rows", b.text(1, rows), before)
	b.served("pg-b", "at last")
	b.clean()
}
