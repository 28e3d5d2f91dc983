package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// observer is a fanout.Progress that calls a function when a shard is finished.
type observer func(n shards.Number)

func (o observer) Begin(string, int) {}
func (o observer) End()              {}
func (o observer) Finished(_ string, n shards.Number, _ error, _ time.Duration) {
	o(n)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	b := setup(t, 40, 2, "001_users.sql", users, "002_photos.sql", photos)
	b.cfg.PerHost = 2
	ctx, interrupt := context.WithCancelCause(t.Context())
	finished := 0
	b.cfg.Progress = observer(func(shards.Number) {
		if finished++; finished == 6 {
			interrupt(errors.New("enough"))
		}
	})
	report, err := migrate.Up(ctx, b.cfg)
	var partial *shards.PartialError
	if !errors.As(err, &partial) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "enough") {
		t.Fatalf("got %v, want an interrupted PartialError", err)
	}
	equal(t, "failed", len(partial.Failed), 0)
	equal(t, "done and not attempted", partial.Done.Len()+partial.NotAttempted.Len(), 40)
	if done := partial.Done.Len(); done < 6 || done > 6+4 {
		t.Errorf("%d shards done after an interrupt at the sixth", done)
	}
	for n, version := range b.versions() {
		want := int32(0)
		if report.Done.Has(shards.Number(n)) {
			want = 2
		}
		equal(t, fmt.Sprintf("version of shard %d", n), version, want)
	}

	b.cfg.Progress = nil
	second := b.up()
	equal(t, "taken up", second.Done.String(), partial.NotAttempted.String())
	equal(t, "up to date", second.UpToDate.String(), partial.Done.String())
}

func TestInterruptBeforeAnything(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := migrate.Up(ctx, b.cfg)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, migrate.ErrNothingRun) {
		t.Errorf("got %v", err)
	}
}

// A shard that is under way when the grace is over is cut off; the server undoes what was begun.
func TestGraceIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users, "002_long.sql", "create table long (); select pg_sleep(600)")
	b.cfg.Grace = 50 * time.Millisecond
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		waitFor(t, b, "select exists (select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database())")
		interrupt()
	}()
	_, err := migrate.Up(ctx, b.cfg)
	var partial *shards.PartialError
	if !errors.As(err, &partial) || len(partial.Failed) != 1 || !strings.Contains(err.Error(), "migration 002_long.sql, line 1: ") {
		t.Fatalf("got %v, want that shard 0 failed", err)
	}
	waitFor(t, b, "select not exists (select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database())")
	equal(t, "versions", fmt.Sprint(b.versions()), "[1]")
	equal(t, "table", b.value(0, "select to_regclass('long')"), "null")
}

// waitFor returns when a query in shard 0 says true.
func waitFor(t *testing.T, b *bundle, query string) {
	conn, err := connect(t.Context(), b.m.Host(0))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		var yes bool
		if err := conn.QueryRow(t.Context(), query).Scan(&yes); err != nil {
			t.Error(err)
			return
		}
		if yes {
			return
		}
	}
	t.Errorf("waited in vain: %s", query)
}

func TestKilledSession(t *testing.T) {
	t.Parallel()
	// The file waits in shard 3 until this test lets it go on.
	b := setup(t, 12, 2, "001_users.sql", users,
		"002_wait.sql", "create table x ();\n{{if eq .shard 3}}select pg_advisory_xact_lock(42);{{end}}")
	holder := b.connect(b.m.Host(3))
	if _, err := holder.Exec(t.Context(), "select pg_advisory_lock(42)"); err != nil {
		t.Fatal(err)
	}
	killer := b.connect(b.m.Host(3))
	var wg sync.WaitGroup
	wg.Go(func() {
		waitFor(t, b, `select exists (select from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database()))`)
		_, err := killer.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`)
		if err != nil {
			t.Error(err)
		}
	})
	b.cfg.PerHost = 1
	_, partial := b.upFails()
	wg.Wait()
	equal(t, "done", partial.Done.String(), "0-2,4-11")
	equal(t, "error", partial.Failed[0].Error(), `shard 3 (shard_00003 on pg-a): migration 002_wait.sql, line 2 of its rendered text: `+
		`terminating connection due to administrator command (SQLSTATE 57P01); in: select pg_advisory_xact_lock(42)`)
	if _, err := holder.Exec(t.Context(), "select pg_advisory_unlock(42)"); err != nil {
		t.Fatal(err)
	}
	report := b.up()
	equal(t, "done", report.Done.String(), "3")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 2 3}]")
}
