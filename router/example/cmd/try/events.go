package main

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// event is something that happens to the service while it is used.
type event struct {
	after float64 // this part of the load's time
	name  string
	apart bool // it is to be felt on one host only
	do    func(context.Context) error
}

// events returns what happens, in order.
func (t *try) events() []event {
	fail := "kill -9 of pg-b, its standby is promoted"
	if t.hosts.standby == nil {
		fail = "kill -9 of pg-b, and its restart"
	}
	return []event{
		{0.10, "map: pg-b has a standby", false, t.changeMap("pg-b has a standby", func(c *shards.Config) { c.Hosts[1].DSN = t.hosts.dsnBoth() })},
		{0.20, "map: pg-a takes no new users", false, t.changeMap("pg-a is short of space", func(c *shards.Config) { c.Hosts[0].Closed = true })},
		{0.30, "map: pg-a takes new users, pg-b more", false, t.changeMap("pg-a was tidied up", func(c *shards.Config) {
			c.Hosts[0].Closed, c.Hosts[1].Weight = false, 2
		})},
		{0.40, "migration of all shards", false, t.migrate},
		{0.60, fail, true, t.hosts.failOver},
		{0.85, "map: new users everywhere alike", false, t.changeMap("pg-b has no standby for now", func(c *shards.Config) { c.Hosts[1].Weight = 1 })},
	}
}

// happen has everything happen at its time, and returns when the load's time is over.
func (t *try) happen(ctx context.Context) error {
	began := time.Now()
	for _, e := range t.events() {
		if err := pause(ctx, time.Until(began.Add(time.Duration(e.after*float64(t.length))))); err != nil {
			return err
		}
		t.say("%5.1f s  %s", time.Since(began).Seconds(), e.name)
		if err := t.load.During(e.name, e.apart, func() error { return e.do(ctx) }); err != nil {
			return err
		}
	}
	return pause(ctx, time.Until(began.Add(t.length)))
}

// changeMap returns what makes the next version of the map out of the last one.
func (t *try) changeMap(why string, change func(*shards.Config)) func(context.Context) error {
	return func(ctx context.Context) error {
		change(&t.edited)
		if err := t.writeMap(t.edited); err != nil {
			return err
		}
		return t.kiloshard(ctx, "map", "edit", "--file", t.path("map.yaml"), "--why", why)
	}
}

// migrate runs the migrations of the next release, before that is there.
func (t *try) migrate(ctx context.Context) error {
	if err := t.addMigrations(); err != nil {
		return err
	}
	return t.kiloshard(ctx, "migrate", "up")
}
