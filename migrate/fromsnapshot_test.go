package migrate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/drift"
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

// TestNewShardsBesideMigratedOnes adds a column by hand to most shards. New shards must not get it.
func TestNewShardsBesideMigratedOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 1)
	b.cfg.Files, b.cfg.Shards, b.cfg.Replay = manyFiles(), set(t, "0-3"), true
	b.up()
	equal(t, "replayed", b.value(0, fromSnapshots), "0")
	for n := range set(t, "1-3").All() {
		b.exec(n, "alter table users add column by_hand int")
	}
	b.cfg.Shards, b.cfg.Replay = b.m.All(), false
	var phases []string
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind == migrate.PhaseBegan {
			phases = append(phases, e.Phase)
		}
	}
	report := b.up()
	if d := report.Donor; d == nil || d.Shard != 4 && d.Shard != 5 || d.Alike != 2 || d.Of != 2 {
		t.Errorf("got the donor %+v, want 4 or 5, which are alike", d)
	}
	equal(t, "phases", fmt.Sprint(phases), "[first shards all hosts]")
	equal(t, "from a snapshot", b.value(0, fromSnapshots), "2")
	equal(t, "columns made by hand", b.value(0, "select count(*) from pg_attribute where attname = 'by_hand'"), "3")
}

// TestNewShardsAfterACanary takes them from those of the canary that are new, and from others if it has too few.
func TestNewShardsAfterACanary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		canary int
		want   string
	}{
		{1, "[canary first shards all hosts], 8 made"},
		{3, "[canary first shards all hosts], 8 made"}, // of which two were at a version
		{4, "[canary all hosts], 8 made"},
		{9, "[canary all hosts], 3 made"},
	} {
		t.Run(fmt.Sprint(tt.canary), func(t *testing.T) {
			t.Parallel()
			b := setup(t, 12, 1)
			b.cfg.Files, b.cfg.Shards, b.cfg.To = manyFiles(), set(t, "0-1"), 3
			b.up()
			b.cfg.Shards, b.cfg.To, b.cfg.Canary = b.m.All(), 0, tt.canary
			var phases []string
			b.cfg.Events = func(e migrate.Event) {
				if e.Kind == migrate.PhaseBegan {
					phases = append(phases, e.Phase)
				}
			}
			b.up()
			equal(t, "phases", fmt.Sprintf("%v, %s made", phases, b.value(0, fromSnapshots)), tt.want)
			checkAlike(t, b)
		})
	}
}

// TestFilesThatWriteRows runs files that leave rows in each shard, and makes the others from a snapshot if they leave none.
func TestFilesThatWriteRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, made, rows, why string }{
		{"a row", "insert into users (id) values (1)", "0", "1", "rows in table users"},
		{"none", "update users set name = 'x'; insert into users select * from users; do $$ begin delete from users; end $$", "4", "0", ""},
		{"a shard of its own", "do $$ begin if current_schema() = 'shard_00001' then create table other (); end if; end $$", "0", "0", "no structure is shared by more than half"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 6, 1)
			dir := manyFiles()
			dir["013_rows.sql"] = &fstest.MapFile{Data: []byte(tt.file)}
			b.cfg.Files = dir
			report := b.up()
			equal(t, "from a snapshot", b.value(0, fromSnapshots), tt.made)
			for n := range b.m.All().All() {
				equal(t, "rows", b.value(n, "select count(*) from users"), tt.rows)
			}
			if (tt.why == "") != (report.NoSnapshot == nil) || tt.why != "" && !strings.Contains(report.NoSnapshot.Error(), tt.why) {
				t.Errorf("got %v, expected %q", report.NoSnapshot, tt.why)
			}
		})
	}
}
