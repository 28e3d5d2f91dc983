package migrate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func TestForce(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2, "001_users.sql", users, "002_photos.sql", photos, "003_more.sql", "create table more ()")
	b.cfg.To = 2
	b.up()
	b.exec(5, "update schema_version set version = 9")

	b.cfg.Shards, b.cfg.To = set(t, "1,4-5"), 0
	report, err := migrate.Force(t.Context(), b.cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "steps", fmt.Sprint(report.Steps), "[{2 1 1,4} {9 1 5}]")
	equal(t, "done", report.Done.String(), "1,4-5")
	equal(t, "versions", fmt.Sprint(b.versionsOfAll()), "[2 1 2 2 1 1]")
	equal(t, "tables", b.value(4, tables), "photos users")
	equal(t, "ledger", b.value(4, ledgerOf(4)), "up1, up2, force1")
	const current = "select string_agg(version::text, ' ' order by entry) from kiloshard.ledger where current and shard = 4"
	equal(t, "what is current", b.value(4, current), "1")
	equal(t, "the entry", b.value(4, "select format('%s %s %s', file, length(checksum), run) from kiloshard.ledger where direction = 'force' and shard = 4"), "001_users.sql 64 "+report.Run)

	report, err = migrate.Force(t.Context(), b.cfg, 3)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 3 1,4-5}]")
	equal(t, "what is current", b.value(4, current), "1")
	b.cfg.Shards = shards.Set{}
	equal(t, "up", b.up().Done.String(), "0,2-3")
}

// A shard without a version table, and one whose version is there already.
func TestForceFromNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.cfg.Shards = set(t, "1")
	for range 2 {
		report, err := migrate.Force(t.Context(), b.cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "done", report.Done.String(), "1")
	}
	equal(t, "ledger", b.value(1, ledgerOf(1)), "force1, force1")
	if _, err := migrate.Force(t.Context(), b.cfg, 0); err != nil {
		t.Fatal(err)
	}
	equal(t, "versions", fmt.Sprint(b.versionsOfAll()), "[0 0]")
	equal(t, "tables", b.value(1, tables), "null")
}

// A file that was begun is run from its first statement on.
func TestForceForgetsWhatWasBegun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_index.sql", disableTx+"create table a (); select 1 / (select count(*) from pg_namespace where nspname = 'go_on')")
	_, _ = b.upFails()
	b.exec(0, "drop table a; create schema go_on")
	b.cfg.Shards = set(t, "0")
	if _, err := migrate.Force(t.Context(), b.cfg, 0); err != nil {
		t.Fatal(err)
	}
	b.up()
	equal(t, "tables", b.value(0, tables), "a")
}

func TestForceIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.exec(1, "drop schema shard_00001")
	tests := []struct {
		name    string
		set     shards.Set
		version int32
		want    string
	}{
		{"no shards", shards.Set{}, 1, "migrate: Config.Shards is empty: expected the shards whose version is to be set"},
		{"a version without a file", set(t, "0"), 2, "version 2: expected 0, or that of a file, 1 to 1"},
		{"a negative version", set(t, "0"), -1, "version -1: expected 0, or that of a file, 1 to 1"},
		{"a shard that is not created", set(t, "0-1"), 1, "0 of 2 shards done, 1 failed, 1 not attempted: nothing was run; shard 1 (shard_00001 on pg-a): the schema does not exist: run kiloshard create"},
	}
	for _, test := range tests {
		b.cfg.Shards = test.set
		if _, err := migrate.Force(t.Context(), b.cfg, test.version); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	equal(t, "version table", b.value(0, "select to_regclass('schema_version')"), "null")
}

func TestForceWaitsForTern(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.cfg.Shards, b.cfg.TernWait = set(t, "0"), 50*time.Millisecond
	migrator, _ := ternOn(t, b, 1)
	migrator.OnStart = func(int32, string, string, string) { // tern holds its lock meanwhile
		if _, err := migrate.Force(t.Context(), b.cfg, 1); !errors.Is(err, migrate.ErrTernAtWork) {
			t.Errorf("got %v, want ErrTernAtWork", err)
		}
	}
	if err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}
