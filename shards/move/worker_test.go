package move_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// A row that somebody puts on the target, and that the source gets as well, ends the move with an error instead of hanging it.
func TestDuplicateOnTarget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	cfg := b.cfg
	cfg.Events = func(e progress.Event) {
		t.Log(point(e))
		if point(e) == "copy: copied" {
			b.exec(1, asReplica+`insert into shard_00001.events values (11, 'by hand')`)
			b.exec(0, `insert into shard_00001.events (what) values ('y')`)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := move.Run(ctx, cfg)
	if err == nil || !strings.Contains(err.Error(), "on pg-b has failed") || ctx.Err() != nil {
		t.Fatalf("got %v", err)
	}
	b.exec(0, `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
	b.exec(1, asReplica+`delete from shard_00001.events where what = 'by hand'`)
	if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.served("pg-b", "after the resume")
	b.clean()
}

// Servers notice within half a minute that a mover has vanished, whatever the network says.
func TestKeepalives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for host := range 2 {
		b.exec(host, `create table public.settings (idle text, every text, count text, timeout text);
			create function public.note() returns event_trigger language plpgsql as $$ begin
			insert into public.settings select current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout')
			where inet_client_addr() is not null and current_setting('application_name') = 'kiloshard move'; end $$;
			create event trigger note on ddl_command_end when tag in ('CREATE PUBLICATION', 'CREATE SUBSCRIPTION') execute function public.note()`)
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if b.text(0, `select inet_client_addr() is null`) == "t" {
		t.Skip("a socket of this machine has no keepalives: expected a server that listens on TCP")
	}
	for host, h := range b.m.Hosts() {
		b.equal(h.Name, b.text(host, `select string_agg(distinct concat_ws(' ', idle, every, count, timeout), ', ') from public.settings`), "10 5 3 25000")
	}
}
