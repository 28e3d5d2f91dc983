package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

const below = "\n---- create above / drop below ----\n"

func TestDown(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2,
		"001_users.sql", "create table users (id int)"+below+"drop table users",
		"002_photos.sql", "create table photos (id int)"+below+"drop table photos",
		"003_likes.sql", "create table likes_{{.shard}} (id int)"+below+"drop table likes_{{.shard}}",
	)
	b.up()
	b.cfg.Shards, b.cfg.To = set(t, "0,4"), 1
	report, err := migrate.Down(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "steps", fmt.Sprint(report.Steps), "[{3 1 0,4}]")
	equal(t, "versions", fmt.Sprint(b.versions()), "[1 0 0 0 1 0]") // of those that were asked
	for n, want := range map[int]string{0: "users", 1: "likes_1 photos users", 4: "users"} {
		equal(t, "tables", b.value(shards.Number(n), tables), want)
	}
	equal(t, "down again", down(t, b).UpToDate.String(), "0,4")
	b.cfg.To = 0
	down(t, b)
	equal(t, "tables at 0", b.value(4, tables), "null")
	b.cfg.To = 3
	b.up()
	equal(t, "tables at 3 again", b.value(4, tables), "likes_4 photos users")
	equal(t, "the ledger", b.value(4, "select string_agg(direction || version, ' ' order by entry) from kiloshard.ledger where shard = 4"),
		"up1 up2 up3 down3 down2 down1 up1 up2 up3")
	equal(t, "what is current", b.value(4, "select string_agg(version::text, ' ' order by entry) from kiloshard.ledger where shard = 4 and current"), "1 2 3")
}

const tables = "select string_agg(tablename, ' ' order by tablename) from pg_tables where schemaname = current_schema() and tablename <> 'schema_version'"

func down(t *testing.T, b *bundle) migrate.Report {
	t.Helper()
	report, err := migrate.Down(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestDownNeedsAWay finds a file without a way down before anything is run.
func TestDownNeedsAWay(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users, "002_photos.sql", "create table photos2 (id int)"+below+"drop table photos2")
	b.up()
	_, err := migrate.Down(t.Context(), b.cfg)
	var e *migrate.FileError
	if !errors.Is(err, migrate.ErrNothingRun) || !errors.As(err, &e) || e.File != "001_users.sql" || !strings.Contains(err.Error(), "no way down") {
		t.Errorf("got %v", err)
	}
	equal(t, "versions", fmt.Sprint(b.versions()), "[2 2]")
}

// TestDownNamesTheLine has an error in a way down.
func TestDownNamesTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", "create table users (id int);\n"+below+"\nselect 1;\ndrop table nobody;")
	b.up()
	_, err := migrate.Down(t.Context(), b.cfg)
	var e *migrate.FileError
	if !errors.As(err, &e) || e.Line != 6 || e.Statement != "drop table nobody" {
		t.Errorf("got %v, expected line 6", err)
	}
}
