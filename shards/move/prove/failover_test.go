package prove_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A way back goes on after its new host was lost and a standby promoted that syncs slots, which Postgres does from 17 on: what was written on
// both comes to the old host.
func TestWayBackAfterPromotion(t *testing.T) {
	t.Parallel()
	c := start(t, nil)
	if c.text("pg-b", `select current_setting('server_version_num')::int >= 170000`) == "f" {
		return
	}
	c.exec("pg-b", `alter system set synchronized_standby_slots = 'standby'`)
	c.exec("pg-b", `select pg_create_physical_replication_slot('standby'), pg_reload_conf()`)
	backup, err := c.servers["pg-b"].Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby, err := backup.Standby(t.Context(), "standby", map[string]string{
		"primary_conninfo": c.servers["pg-b"].DSN(database), "primary_slot_name": "standby",
		"sync_replication_slots": "on", "hot_standby_feedback": "on",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.servers["standby"] = standby

	cfg := c.config("pg-a", "pg-b")
	cfg.RollbackFor = time.Hour
	if _, err := move.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	kept, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	cfg = c.config("pg-b", "pg-a")
	go func() {
		ended <- move.Keep(kept, move.KeepConfig{Map: cfg.Map, Shards: cfg.Shards, Events: cfg.Events})
	}()
	// A standby keeps a slot once that has come past what it had when it first looked.
	c.eventually(func() string { return "the standby has no slot of the way back that it would keep" }, func() bool {
		c.exec("pg-b", `insert into shard_00001.photos (title) values ('before'); select pg_log_standby_snapshot()`)
		return c.text("standby", `select exists (select from pg_replication_slots where synced and not temporary and invalidation_reason is null)`) == "t"
	})
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.exec("pg-b", `insert into shard_00001.photos (title) values ('after')`)
	c.eventually(func() string { return "the standby is late" }, func() bool {
		return c.text("standby", `select exists (select from shard_00001.photos where title = 'after')`) == "t"
	})

	if err := c.servers["pg-b"].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.exec("standby", `select pg_promote()`)
	c.servers["pg-b"] = standby
	delete(c.servers, "standby")
	c.links["mover pg-b"] = newLink(t, standby.DSN(database))
	c.direct, c.mover = c.open(c.directly), c.open(c.throughLinks)
	c.exec("pg-b", `insert into shard_00001.photos (title) values ('promoted')`)
	want := c.text("pg-b", `select count(*) || ' ' || sum(hashtext(p::text)) from shard_00001.photos p`)
	cfg = c.config("pg-b", "pg-a")
	tell := cfg.Events
	cfg.Events = func(e progress.Event) {
		tell(e)
		if e.What == "waits for a standby to read slot standby on pg-b: expected one, or synchronized_standby_slots without it" {
			c.exec("pg-b", `alter system reset synchronized_standby_slots`)
			c.exec("pg-b", `select pg_reload_conf()`)
		}
	}
	if _, err := move.Rollback(t.Context(), cfg.Config); err != nil {
		t.Fatal(err)
	}
	if got := c.text("pg-a", `select count(*) || ' ' || sum(hashtext(p::text)) from shard_00001.photos p`); got != want {
		t.Errorf("rows on the old host: got %s, want %s", got, want)
	}
	c.whole("pg-a")
	if report, err := move.Verify(t.Context(), move.Config{Map: c.load(c.direct), Store: c.direct, Shards: shards.SetOf(1)}); err != nil || report.Done.Len() != 1 {
		t.Errorf("verify: %+v, %v", report, err)
	}
	c.clean()
}
