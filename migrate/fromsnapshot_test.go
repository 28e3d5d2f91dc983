package migrate_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
)

// manyFiles returns twelve files that build on each other.
func manyFiles() fstest.MapFS {
	dir := files("001_users.sql", "create table users (id bigint primary key, name text not null default '{{.schema}}')")
	for i := 2; i <= 12; i++ {
		dir[fmt.Sprintf("%03d_more.sql", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "alter table users add column c%d int check (c%d > %d); create index on users (c%d)", i, i, i, i)}
	}
	return dir
}

// checkAlike checks that all shards have one structure.
func checkAlike(t *testing.T, b *bundle) {
	t.Helper()
	report, err := drift.Look(t.Context(), drift.Config{Map: b.m})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Groups) != 1 {
		t.Errorf("%d structures: %+v", len(report.Groups), report.Groups)
	}
}

const fromSnapshots = "select count(*) from kiloshard.ledger where file like '%snapshot of shard%'"

// TestNewShardsFromASnapshot takes the first two through the files, and makes the others like them.
func TestNewShardsFromASnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t, 12, 2)
	b.cfg.Files = manyFiles()
	report := b.up()
	equal(t, "done", report.Done.String(), "0-11")
	equal(t, "versions", fmt.Sprint(b.versions()), fmt.Sprint([]int32{12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}))
	checkAlike(t, b)
	equal(t, "from a snapshot on pg-a", b.value(0, fromSnapshots), "5")
	equal(t, "from a snapshot on pg-b", b.value(6, fromSnapshots), "5")
	equal(t, "a default of its own", b.value(5, "select column_default from information_schema.columns where table_schema = current_schema() and column_name = 'name'"), "'shard_00005'::text")
	equal(t, "nothing to do", b.up().UpToDate.String(), "0-11")
}

// TestNewShardsBesideMigratedOnes has a donor from the beginning.
func TestNewShardsBesideMigratedOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 1)
	b.cfg.Files, b.cfg.Shards, b.cfg.Replay = manyFiles(), set(t, "0-3"), true
	b.up()
	equal(t, "replayed", b.value(0, fromSnapshots), "0")
	b.cfg.Shards, b.cfg.Replay = b.m.All(), false
	var phases []string
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind == migrate.PhaseBegan {
			phases = append(phases, e.Phase)
		}
	}
	b.up()
	equal(t, "phases", fmt.Sprint(phases), "[all hosts]")
	equal(t, "from a snapshot", b.value(0, fromSnapshots), "4")
	checkAlike(t, b)
}

// TestNewShardsBesideDriftedOnes has a column that somebody added by hand to the shard with the highest number. It must
// not spread to new shards; where half of the shards have it, these run the files.
func TestNewShardsBesideDriftedOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, 16, 1)
	b.cfg.Files, b.cfg.Shards, b.cfg.Replay = manyFiles(), set(t, "0-3"), true
	b.up()
	b.exec(3, "alter table users add column by_hand int")
	const byHand = "select count(*) from pg_attribute where attname = 'by_hand'"
	b.cfg.Shards, b.cfg.Replay = set(t, "0-7"), false
	report := b.up()
	if d := report.Donor; d == nil || d.Shard == 3 || d.Alike != 3 || d.Of != 4 {
		t.Errorf("got the donor %+v, want one of three alike among four", d)
	}
	equal(t, "columns made by hand", b.value(0, byHand), "1")
	equal(t, "from a snapshot", b.value(0, fromSnapshots), "4")

	for n := range set(t, "4-6").All() {
		b.exec(n, "alter table users add column by_hand int")
	}
	b.cfg.Shards = b.m.All()
	report = b.up()
	var none *snapshot.NoMajorityError
	if report.Donor != nil || !errors.As(report.NoSnapshot, &none) {
		t.Errorf("got the donor %+v, %v, want a NoMajorityError", report.Donor, report.NoSnapshot)
	}
	equal(t, "columns made by hand", b.value(0, byHand), "4")
	equal(t, "from a snapshot", b.value(0, fromSnapshots), "4")
}

// TestRowsAreNotInASnapshot runs files that write rows in each shard.
func TestRowsAreNotInASnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 1)
	dir := manyFiles()
	dir["013_rows.sql"] = &fstest.MapFile{Data: []byte("insert into users (id) values (1)")}
	b.cfg.Files = dir
	var log strings.Builder
	b.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b.up()
	equal(t, "from a snapshot", b.value(0, fromSnapshots), "0")
	for n := range b.m.All().All() {
		equal(t, "rows", b.value(n, "select count(*) from users"), "1")
	}
	if !strings.Contains(log.String(), "013_rows.sql") {
		t.Errorf("the log does not say why: %s", log.String())
	}
}
