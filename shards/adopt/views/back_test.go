package views_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

// dump returns the structure of the database, as pg_dump writes it.
func (b *bundle) dump() string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "pg_dump", "--schema-only", "-d", b.m.Hosts()[0].ConnString())
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) { // a new word in each dump
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestBack holds that the way back leaves everything as it was, and the rows that were written by way of shards.
func TestBack(t *testing.T) {
	t.Parallel()
	b := setup(t, service+`
		create table log (at timestamptz not null, user_id bigint not null references users) partition by range (at);
		create table log_1 partition of log for values from ('2026-01-01') to ('2027-01-01');
		grant select, insert on albums to public; grant select on photos to pg_monitor;
	`)
	b.text += "- {table: public.albums, is: keyed, by: user_id, copy: true}\n"
	before := b.dump()
	b.make()
	value(t, b.shard(b.router(), 7), "insert into albums (id, user_id) values (1001, 7) returning id")
	if b.dump() == before {
		t.Error("gate 1 has no trace in the dump")
	}
	dropped, err := views.Back(t.Context(), views.BackConfig{Map: b.m})
	if err != nil || dropped.Len() != 4 {
		t.Fatalf("%s, %v", dropped, err)
	}
	if after := b.dump(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if got := b.run("select user_id from albums where id = 1001"); len(got) != 1 {
		t.Error("a row is lost")
	}
	if _, err := views.Back(t.Context(), views.BackConfig{Map: b.m}); !errors.Is(err, ledger.ErrNone) {
		t.Errorf("a second time: %v", err)
	}
	b.make() // and forth again, with IDs of shards in the old tables
}

// TestBackStops holds that the way back drops nothing of others, and does not begin at a later gate.
func TestBackStops(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	b.run("create view mine as select * from shard_00002.albums")
	if _, err := views.Back(t.Context(), views.BackConfig{Map: b.m}); err == nil || !strings.Contains(err.Error(), "view public.mine depends on view shard_00002.albums") {
		t.Errorf("got %v", err)
	}
	b.run("drop view mine")
	b.make()
	conn, err := ledger.Open(t.Context(), b.m.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close(context.Background(), conn)
	if err := ledger.SetGate(t.Context(), conn, ledger.GateViews, ledger.GateClosed); err != nil {
		t.Fatal(err)
	}
	gate := (*views.GateError)(nil)
	if _, err := views.Back(t.Context(), views.BackConfig{Map: b.m}); !errors.As(err, &gate) || gate.Gate != ledger.GateClosed {
		t.Errorf("at a later gate: %v", err)
	}
	if _, err := views.Make(t.Context(), b.config()); !errors.As(err, &gate) {
		t.Errorf("at a later gate: %v", err)
	}
}
