package move_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A rate holds up what is copied.
func TestRate(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{false, true} {
		b := setup(t)
		b.exec(0, `insert into shard_00001.photos (title) select repeat('x', 1000) from generate_series(1, 1000)`)
		b.cfg.Rate, b.cfg.Offline = 2e6, offline
		began := time.Now()
		if _, err := move.Run(t.Context(), b.cfg); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 400*time.Millisecond { // 1 MB
			t.Errorf("offline %t: 1 MB in %s at 2 MB a second", offline, took)
		}
		b.clean()
	}
}

// What is copied at a rate arrives as it was, while services write. What was interrupted is taken back, or goes on, with a rate or without.
func TestRateUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+`
		create table half (n int primary key, half numeric generated always as (n / 2.0) stored);
		insert into half select generate_series(1, 50);
		create table bare (t text); insert into bare values (E'a\tb\\\n'), (null), ('');
		create function fail() returns trigger language plpgsql as $$ begin raise 'a trigger has run'; end $$;
		create trigger fail before insert on likes for each row execute function fail();`)
	const rows = `select count(*) || ' ' || sum(hashtext(p::text)) || ' ' || (select count(*) from shard_00001.likes) || ' ' || (select sum(half) from shard_00001.half) ||
		(select string_agg(coalesce(t, 'null'), ',' order by t) from shard_00001.bare) from shard_00001.photos p where title <> 'load'`
	before := b.text(0, rows)
	const rate = 5e6
	c := b.crowd(t, returning, begun, reading(`select count(*) from events`))
	b.cfg.Rate = rate
	for _, at := range []string{"copy: copying", "copy: committing"} {
		b.interrupted(at)
		c.some("calls after an interrupt")
		if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.served("pg-a", "after the abort")
		b.clean()
	}
	for _, resumed := range []int64{rate, 0} {
		b.cfg.Map = b.load()
		home := b.cfg.Map.HostIndex(1)
		b.cfg.To, b.cfg.Rate = other(b.cfg.Map.Host(1).Name), rate
		b.interrupted("copy: committing")
		b.cfg.Rate = resumed
		if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
			t.Fatal(err)
		}
		b.equal("rows", b.text(1-home, rows), before)
		b.served(b.cfg.To, "after the resume")
		b.clean()
	}
	c.end(b, 0)
}

// A copy that can come to nothing is not gone on with.
func TestRateWithoutSlot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, `insert into shard_00001.photos (title) select repeat('x', 1000) from generate_series(1, 1000)`)
	b.cfg.Rate = 10e3 // for 100 s
	b.cfg.Events = func(e progress.Event) {
		if point(e) == "copy: slot made" {
			slots := b.text(0, `select count(pg_drop_replication_slot(slot_name)) from pg_replication_slots where database = current_database()`)
			b.equal("slots", slots, "1")
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "is not on pg-a any more") {
		t.Errorf("got %v, expected that the slot is gone", err)
	}
	b.cfg.Events = nil
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.clean()
}
