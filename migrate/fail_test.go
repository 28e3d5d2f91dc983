package migrate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

func TestSyntaxErrorKeepsEarlierFiles(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 2, "001_users.sql", users, "002_oops.sql", "create table ok ();\ncreate tabel photos ();", "003_more.sql", "create table more ();")
	report, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "")
	equal(t, "not attempted", partial.NotAttempted.String(), "")
	equal(t, "failed", len(partial.Failed), 8)
	equal(t, "steps", fmt.Sprint(report.Steps), "[{0 1 0-7}]")
	equal(t, "versions", fmt.Sprint(b.versions()), "[1 1 1 1 1 1 1 1]")
	for n, failed := range partial.Failed {
		var file *migrate.FileError
		if !errors.As(failed, &file) {
			t.Fatalf("got %v, want a FileError", failed)
		}
		equal(t, "shard", failed.Shard, shards.Number(n))
		equal(t, "error", failed.Error(), fmt.Sprintf(`shard %d (%s on %s): migration 002_oops.sql, line 2: syntax error at or near "tabel" (SQLSTATE 42601); in: create tabel photos ()`,
			n, b.m.Schema(shards.Number(n)), b.m.Host(shards.Number(n)).Name))
	}

	b.cfg.Files = files("001_users.sql", users, "002_oops.sql", "create table ok ();\ncreate table photos ();", "003_more.sql", "create table more ();")
	report = b.up()
	equal(t, "done", report.Done.String(), "0-7")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 3 0-7}]")
}

func TestFailureOnSomeShardsLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 8, 2, "001_users.sql", users)
	b.up()
	bad := []shards.Number{2, 5}
	for _, n := range bad {
		b.exec(n, "insert into users values (1, 'ann'), (2, 'ann')")
	}
	b.cfg.Files = files("001_users.sql", users, "002_ok.sql", "create table ok ();", "003_unique.sql", "create unique index on users (name);", "004_more.sql", "create table more ();")
	report, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0-1,3-4,6-7")
	equal(t, "reported", report.Done.String(), "0-1,3-4,6-7")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 2 2,5} {1 4 0-1,3-4,6-7}]")
	equal(t, "versions", fmt.Sprint(b.versions()), "[4 4 2 4 4 2 4 4]")
	for i, failed := range partial.Failed {
		var pg *pgconn.PgError
		if !errors.As(failed, &pg) || pg.Code != "23505" {
			t.Errorf("got %v, want SQLSTATE 23505", failed)
		}
		equal(t, "shard", failed.Shard, bad[i])
	}

	for _, n := range bad {
		b.exec(n, "delete from users where id = 2")
	}
	report = b.up()
	equal(t, "done", report.Done.String(), "2,5")
	equal(t, "up to date", report.UpToDate.String(), "0-1,3-4,6-7")
	equal(t, "versions", fmt.Sprint(b.versions()), "[4 4 4 4 4 4 4 4]")
}

// With standard_conforming_strings off, which the checks of files do not reckon with, a backslash
// takes the quote behind it with it; with it on, the string goes on to the last quote.
func TestFileThatEndsItsTransactionUnseen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
	}{
		{"commit", `select 'a\''; commit; select 1 --'`},
		{"commit after an update of one row", `create table a as select 1 as id; select 'a\''; update a set id = 2; commit; select 1 --'`},
		{"commit, then an error", `create table a as select 1 as id; select 'a\''; update a set id = 2; commit; select nothing --'`},
		{"rollback", `select 'a\''; rollback; select 1 --'`},
	}
	b := setup(t, len(tests), 1)
	b.execHost(b.m.Hosts()[0], "do $$ begin execute 'alter database ' || current_database() || ' set standard_conforming_strings = off'; end $$")
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := shards.Number(i)
			b := &bundle{t: t, m: b.m, cfg: b.cfg, conns: map[string]*pgx.Conn{}}
			b.cfg.Shards = shards.SetOf(n)
			b.cfg.Files = files("001_users.sql", users, "002_hidden.sql", test.file, "003_more.sql", "create table more ()")
			report, partial := b.upFails()
			if !errors.Is(partial, migrate.ErrTransactionEnded) {
				t.Errorf("got %v, want ErrTransactionEnded", partial)
			}
			if !strings.Contains(partial.Error(), "002_hidden.sql") {
				t.Errorf("got %v, want the file's name", partial)
			}
			equal(t, "steps", fmt.Sprint(report.Steps), fmt.Sprintf("[{0 1 %d}]", n))
			equal(t, "version", b.versions()[n], 1)
			equal(t, "next file", b.value(n, "select to_regclass('more')"), "null")
		})
	}
}

func TestLockTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t, 3, 1, "001_users.sql", users)
	b.up()
	holder := b.connect(b.m.Host(1))
	if _, err := holder.Exec(t.Context(), "begin; lock table shard_00001.users"); err != nil {
		t.Fatal(err)
	}
	b.cfg.Files = files("001_users.sql", users, "002_wide.sql", "alter table users add column wide text")
	b.cfg.LockTimeout = 100 * time.Millisecond
	_, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0,2")
	var pg *pgconn.PgError
	if !errors.As(partial, &pg) || pg.Code != "55P03" {
		t.Errorf("got %v, want SQLSTATE 55P03", partial)
	}
	if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	equal(t, "done", b.up().Done.String(), "1")
}

func TestVersionTableThatCannotBeMade(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.exec(1, "create domain schema_version as int")
	_, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0")
	if text := partial.Failed[0].Error(); !strings.Contains(text, "before migration 001_users.sql: ERROR: ") {
		t.Errorf("got %s", text)
	}
	if !slices.Equal(b.versions(), []int32{1, 0}) {
		t.Errorf("got versions %v", b.versions())
	}
}
