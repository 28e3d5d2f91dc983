package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	tern "github.com/jackc/tern/v2/migrate"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	var names []string
	for i := 1; i <= 5; i++ {
		names = append(names, fmt.Sprintf("%03d_log.sql", i), fmt.Sprintf("create table if not exists log (file int); insert into log values (%d)", i))
	}
	b := setup(t, 40, 2, names...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	moved := map[shards.Number]int32{}
	for i := range 3 {
		cfg := b.cfg
		if i == 2 {
			cfg.To = 3
		}
		wg.Go(func() {
			report, err := migrate.Up(t.Context(), cfg)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, step := range report.Steps {
				for n := range step.Shards.All() {
					moved[n] += step.To - step.From
				}
			}
		})
	}
	wg.Wait()
	for n := range b.m.All().All() {
		equal(t, "files run", b.value(n, "select string_agg(file::text, ',' order by ctid) from log"), "1,2,3,4,5")
		equal(t, "steps reported", moved[n], 5)
	}
}

// ternOn returns tern itself, pointed at one shard.
func ternOn(t *testing.T, b *bundle, n shards.Number) (*tern.Migrator, *pgx.Conn) {
	t.Helper()
	conn := b.connect(b.m.Host(n))
	if _, err := conn.Exec(t.Context(), "set search_path = "+b.m.SearchPath(n)); err != nil {
		t.Fatal(err)
	}
	// tern undoes settings after every file; these outlive that.
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("do $$ begin execute format('alter role %%I in database %%I set search_path = %s', current_user, current_database()); end $$", b.m.Schema(n))); err != nil {
		t.Fatal(err)
	}
	conn = b.connect(b.m.Host(n))
	migrator, err := tern.NewMigrator(t.Context(), conn, b.m.Schema(n)+".schema_version")
	if err != nil {
		t.Fatal(err)
	}
	if err := migrator.LoadMigrations(b.cfg.Files); err != nil {
		t.Fatal(err)
	}
	return migrator, conn
}

func TestTernAgrees(t *testing.T) {
	t.Parallel()
	b := setup(t, 3, 1, "001_users.sql", users, "002_photos.sql", photos, "003_more.sql", "create table more ();\n---- create above / drop below ----\ndrop table more")
	b.cfg.To = 1
	b.up()

	migrator, conn := ternOn(t, b, 1)
	version, err := migrator.GetCurrentVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tern's version", version, 1)
	if err := migrator.MigrateTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	equal(t, "tern's table", b.value(1, "select to_regclass('shard_00001.photos')"), "photos")
	equal(t, "versions", fmt.Sprint(b.versions()), "[1 2 1]")

	b.cfg.To = 0
	equal(t, "steps", fmt.Sprint(b.up().Steps), "[{1 3 0,2} {2 3 1}]")
	if version, err = migrator.GetCurrentVersion(t.Context()); err != nil || version != 3 {
		t.Errorf("tern's version: got %d and %v, want 3", version, err)
	}
	if err := migrator.MigrateTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	equal(t, "versions", fmt.Sprint(b.versions()), "[3 1 3]")

	// The version table is the one that tern makes.
	shape := func(schema string) string {
		return b.value(0, `select string_agg(format('%s %s %s', attname, atttypid::regtype, attnotnull), ',') ||
			(select string_agg(format(' %s %s', conname, pg_get_constraintdef(oid)), ',') from pg_constraint where conrelid = attrelid)
			from pg_attribute where attrelid = '`+schema+`.schema_version'::regclass and attnum > 0 group by attrelid`)
	}
	if _, err := conn.Exec(t.Context(), "create schema theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := tern.NewMigrator(t.Context(), conn, "theirs.schema_version"); err != nil {
		t.Fatal(err)
	}
	equal(t, "version table", shape("shard_00000"), shape("theirs"))
}

func TestTernAtWork(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 2, "001_users.sql", users)
	migrator, _ := ternOn(t, b, 3)
	var partial *shards.PartialError
	migrator.OnStart = func(int32, string, string, string) { // tern holds its lock meanwhile
		b.cfg.TernWait = 100 * time.Millisecond
		_, partial = b.upFails()
	}
	if err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(partial, migrate.ErrTernAtWork) || !errors.Is(partial, migrate.ErrNothingRun) {
		t.Errorf("got %v, want ErrTernAtWork", partial)
	}
	want := "0 of 4 shards done, 0 failed, 4 not attempted: nothing was run; host pg-b: " +
		"a tern program is at work in this database: its lock was not free within 100ms; it is held by process "
	if !strings.HasPrefix(partial.Error(), want) {
		t.Errorf("got %v, want %s", partial, want)
	}
	equal(t, "done", b.up().Done.String(), "0-2")
}

func TestTernWaitsForTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	migrator, _ := ternOn(t, b, 1)
	blocked := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	b.cfg.PerHost = 1
	b.cfg.Progress = observer(func(n shards.Number) {
		if n != 0 {
			return
		}
		go func() { blocked <- migrator.SetVersion(ctx, 1) }()
		waitFor(t, b, `select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
			and database = (select oid from pg_database where datname = current_database()))`)
	})
	equal(t, "done", b.up().Done.String(), "0-1")
	if err := <-blocked; err != nil {
		t.Error(err)
	}
}
