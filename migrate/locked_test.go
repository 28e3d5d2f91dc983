package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
)

// TestLockedTables has somebody lock what every command reads, and not let go.
func TestLockedTables(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.up()
	config := b.m.Config()
	config.Hosts[0].DSN += "&lock_timeout=1"
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.cfg
	cfg.Map = m
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	holder := b.connect(b.m.Host(0))
	for _, test := range []struct {
		name, table string
		read        func() error
	}{
		{"status, of a ledger", "kiloshard.ledger", func() error { _, err := migrate.Status(ctx, cfg); return err }},
		{"history", "kiloshard.ledger", func() error { _, err := migrate.History(ctx, cfg, 0, ""); return err }},
		{"status, of a version", "shard_00001.schema_version", func() error { _, err := migrate.Status(ctx, cfg); return err }},
		{"drift", "shard_00001.schema_version", func() error { _, err := drift.Look(ctx, drift.Config{Map: m}); return err }},
	} {
		if _, err := holder.Exec(ctx, "begin; lock table "+test.table+" in access exclusive mode"); err != nil {
			t.Fatal(err)
		}
		err := test.read()
		var pg *pgconn.PgError
		want := fmt.Sprintf("%s by process %d, role ", test.table, holder.PgConn().PID())
		if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", test.name, err, want)
		}
		if _, err := holder.Exec(ctx, "rollback"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockedMeanwhile has somebody lock what a migration under way uses, and not let go.
func TestLockedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"kiloshard.ledger", "kiloshard.moves"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_users.sql", users)
			b.exec(0, "create schema if not exists kiloshard; create table kiloshard.moves (shard int, outcome text, side text)")
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			holder := b.connect(b.m.Host(0))
			b.cfg.LockTimeout, b.cfg.Retries = 10*time.Millisecond, -1
			b.cfg.Events = func(e migrate.Event) {
				if e.Kind == migrate.PhaseBegan {
					if _, err := holder.Exec(ctx, "begin; lock table "+table+" in access exclusive mode"); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := migrate.Up(ctx, b.cfg)
			var pg *pgconn.PgError
			want := fmt.Sprintf("process %d ", holder.PgConn().PID())
			if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, expected %q", err, want)
			}
		})
	}
}

// TestLedgerWait reads, in a migration without a LockTimeout, for how long it waits for the ledger.
func TestLedgerWait(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_a.sql", "select 1")
	b.cfg.Canary = 1
	b.cfg.Check = func(context.Context, shards.Set) error { // a run that finds a trigger there does not begin
		b.execHost(b.m.Hosts()[0], `create table public.seen (lock_timeout text);
			create function public.note() returns trigger language plpgsql as 'begin insert into public.seen values (current_setting(''lock_timeout'')); return new; end';
			create trigger note before insert on kiloshard.ledger for each row execute function public.note();`)
		return nil
	}
	b.up()
	equal(t, "lock_timeout", b.value(0, "select lock_timeout from public.seen"), "30s")
}

// TestEntryWaits has somebody lock the ledger while an index is built that no transaction can undo.
func TestEntryWaits(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users, "002_index.sql", disableTx+"create index concurrently found on users (id)")
	b.cfg.To = 1
	b.up()
	b.cfg.To = 0
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	holder := b.connect(b.m.Host(0))
	if _, err := holder.Exec(ctx, "begin; lock table kiloshard.ledger in share row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	waited := ""
	b.cfg.LockTimeout, b.cfg.Retries = 10*time.Millisecond, -1
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind == migrate.ShardWaits && waited == "" {
			waited = e.Blockers
			if _, err := holder.Exec(ctx, "rollback"); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := migrate.Up(ctx, b.cfg); err != nil {
		t.Error(err)
	}
	if want := fmt.Sprintf("process %d ", holder.PgConn().PID()); !strings.Contains(waited, want) {
		t.Errorf("told of %q, expected %q", waited, want)
	}
	equal(t, "entries", b.value(0, "select count(*) from kiloshard.ledger where version = 2"), "2")
}
