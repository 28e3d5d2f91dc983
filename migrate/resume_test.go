package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// resumed returns a function for Config.Events that keeps what it is told of files that go on.
func resumed(into *[]string) func(migrate.Event) {
	return func(e migrate.Event) {
		if e.Kind == migrate.FileResumed {
			*into = append(*into, fmt.Sprintf("%s %d %s %d", e.Host, e.Shard, e.File, e.Statement))
		}
	}
}

func TestStatementThatFailsAndIsResumed(t *testing.T) {
	t.Parallel()
	const index = disableTx + "create table once ();\n-- Names are unique.\ncreate index concurrently users_lower on users (lower(name));\n" +
		"create unique index concurrently users_name on users (name);\ncreate table twice ();\n"
	b := setup(t, 6, 2, "001_users.sql", users, "002_index.sql", index, "003_more.sql", "create table more ()")
	b.cfg.To = 1
	b.up()
	b.cfg.To = 0
	b.exec(4, "insert into users values (1, 'ann'), (2, 'ann')")
	var told []string
	b.cfg.Events = resumed(&told)

	report, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0-3,5")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 3 0-3,5}]")
	var pg *pgconn.PgError
	if !errors.As(partial, &pg) || pg.Code != "23505" {
		t.Errorf("got %v, want SQLSTATE 23505", partial)
	}
	equal(t, "error", partial.Failed[0].Error(), `shard 4 (shard_00004 on pg-b): migration 002_index.sql, line 5: could not create unique index "users_name" (SQLSTATE 23505); `+
		`detail: Key (name)=(ann) is duplicated.; in: create unique index concurrently users_name on users (name); the 2 statements before it stay done`)
	equal(t, "version", b.value(4, "select version from schema_version"), "1")
	equal(t, "indexes", b.value(4, valid), "3 1")

	// Again, with nothing mended: the invalid index is not left to gather.
	_, _ = b.upFails()
	equal(t, "indexes", b.value(4, valid), "3 1")
	equal(t, "told", fmt.Sprint(told), "[pg-b 4 002_index.sql 3]")

	b.exec(4, "delete from users where id = 2")
	equal(t, "steps", fmt.Sprint(b.up().Steps), "[{1 3 4}]")
	equal(t, "indexes", b.value(4, valid), "4 0")
	equal(t, "ledger", b.value(4, ledgerOf(4)), "up1, up2.1, up2.2, up2 failed, up2 failed, up2.3, up2.4, up2, up3")
	equal(t, "tables", b.value(4, tables), "more once twice users")
}

func TestPositionOfAnErrorOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_index.sql", disableTx+"create table größe ();\nselect 'ü',\n  nothing;")
	_, partial := b.upFails()
	var file *migrate.FileError
	if !errors.As(partial, &file) {
		t.Fatalf("got %v, want a FileError", partial)
	}
	equal(t, "error", file.Error(), `migration 001_index.sql, line 4: column "nothing" does not exist (SQLSTATE 42703); in: select 'ü', nothing; the statement before it stays done`)
	equal(t, "kept", file.Kept, 1)
}

// A file that was changed after some of it was done begins anew, and so does one whose template gives something else.
func TestFileThatIsChangedHalfWay(t *testing.T) {
	t.Parallel()
	const fails = disableTx + "create table a (); select nothing"
	tests := []struct {
		name        string
		first, then []string
		want        string // the tables
		told        string
	}{
		{"changed", []string{"001_f.sql", fails}, []string{"001_f.sql", disableTx + "create table b (); create table c ()"}, "a b c", "[pg-a 0 001_f.sql 1]"},
		{
			"the way down is changed",
			[]string{"001_f.sql", disableTx + "create table a (); select * from missing"},
			[]string{"001_f.sql", disableTx + "create table a (); select * from missing" + below + "select 1"},
			"a missing", "[pg-a 0 001_f.sql 2]",
		},
		{
			"a shared template is changed",
			[]string{"001_f.sql", `{{template "s/s.sql"}}`, "s/s.sql", fails},
			[]string{"001_f.sql", `{{template "s/s.sql"}}`, "s/s.sql", disableTx + "create table b ()"},
			"a b", "[pg-a 0 001_f.sql 1]",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, 1, test.first...)
			_, _ = b.upFails()
			if strings.Contains(test.want, "missing") {
				b.exec(0, "create table missing ()")
			}
			var told []string
			b.cfg.Events, b.cfg.Files = resumed(&told), files(test.then...)
			equal(t, "done", b.up().Done.String(), "0")
			equal(t, "tables", b.value(0, tables), test.want)
			equal(t, "told", fmt.Sprint(told), test.told)
			equal(t, "what is current", b.value(0, "select string_agg(format('%s %s', version, statement), ',') from kiloshard.ledger where current"), "1 ")
		})
	}
}

// What was done of a file counts no more when another one was run in the shard since.
func TestProgressEndsWithTheVersionItRestsOn(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users+below+"drop table users",
		"002_index.sql", disableTx+"create index concurrently users_lower on users (lower(name)); select 1 / (select count(*) from users)")
	_, _ = b.upFails()
	equal(t, "indexes", b.value(0, valid), "3 0")
	b.cfg.To = 0
	down(t, b)
	b.cfg.To = 1
	b.up()
	b.exec(0, "insert into users values (1, 'ann')")
	b.cfg.To = 2
	b.up()
	equal(t, "indexes", b.value(0, valid), "3 0")
}

// killBuilds holds up what builds an index in one shard until it is killed, in the middle of it.
func killBuilds(t *testing.T, b *bundle, n shards.Number) (wait func()) {
	t.Helper()
	holder, killer := b.connect(b.m.Host(n)), b.connect(b.m.Host(n)) // the killer's snapshot must not be the holder's
	if _, err := holder.Exec(t.Context(), fmt.Sprintf("begin; lock table %s.users in row exclusive mode", b.m.Schema(n))); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		waits := fmt.Sprintf(" from pg_stat_activity where wait_event = 'virtualxid' and %d = any (pg_blocking_pids(pid))", holder.PgConn().PID())
		waitFor(t, b, "select exists (select"+waits+")")
		if _, err := killer.Exec(t.Context(), "select pg_terminate_backend(pid)"+waits); err != nil {
			t.Error(err)
		}
		_ = holder.Close(context.Background())
	})
	return wg.Wait
}

func TestBuildThatIsKilled(t *testing.T) {
	t.Parallel()
	const index, reindex = "create index concurrently ", "reindex index concurrently "
	tests := []struct {
		name      string
		statement string
		want      string // the indexes in the end
	}{
		{"named", index + `"Users lower" on users (lower(name))`, "3 0"},
		{"if it does not exist", "create unique index concurrently if not exists users_id on users (id)", "3 0"},
		{"without a name", index + "on {{.schema}}.users (upper(name))", "3 0"},
		{"reindex of an index", reindex + "users_name_idx", "2 0"},
		{"reindex of a table", "reindex (concurrently, verbose) table users", "2 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 6, 1, "001_users.sql", users)
			b.up()
			b.cfg.Files = files("001_users.sql", users, "002_index.sql", disableTx+"create table once ();\n"+test.statement+";\ncreate table twice ();")
			wait := killBuilds(t, b, 2)
			_, partial := b.upFails()
			wait()
			equal(t, "done", partial.Done.String(), "0-1,3-5")
			if text := partial.Error(); !strings.Contains(text, "002_index.sql, line 3") || !strings.Contains(text, "(SQLSTATE 57P01); in: ") ||
				!strings.HasSuffix(text, "; the statement before it stays done") {
				t.Errorf("got %s", text)
			}
			equal(t, "an invalid index", strings.HasSuffix(b.value(2, valid), " 0"), false)

			var told []string
			b.cfg.Events = resumed(&told)
			equal(t, "done", b.up().Done.String(), "2")
			equal(t, "told", fmt.Sprint(told), "[pg-a 2 002_index.sql 2]")
			for n := range b.m.All().All() {
				equal(t, "indexes", b.value(n, valid), test.want)
				equal(t, "tables", b.value(n, tables), "once twice users")
			}
		})
	}
}

// An index is invalid also while somebody builds it: that one is waited for, and stays.
func TestIndexThatSomebodyElseBuilds(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users)
	b.up()
	holder, builder := b.connect(b.m.Host(0)), b.connect(b.m.Host(0))
	if _, err := holder.Exec(t.Context(), "begin; lock table shard_00000.users in row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	const build = "create index concurrently users_lower on shard_00000.users (lower(name))"
	built := make(chan error, 1)
	go func() {
		_, err := builder.Exec(t.Context(), build)
		built <- err
	}()
	waitFor(t, b, "select exists (select from pg_stat_activity where wait_event = 'virtualxid' and datname = current_database())")
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		waitFor(t, b, "select exists (select from pg_stat_activity where state like '%aborted%' and query like '%nowait%' and datname = current_database())")
		if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
	})
	b.cfg.Files = files("001_users.sql", users, "002_index.sql", disableTx+"create index concurrently if not exists users_lower on users (lower(name))")
	before := b.value(0, "select 'shard_00000.users_lower'::regclass::oid")
	b.up()
	if err := <-built; err != nil {
		t.Error(err)
	}
	equal(t, "the other's index", b.value(0, "select 'shard_00000.users_lower'::regclass::oid"), before)
	equal(t, "indexes", b.value(0, valid), "3 0")
}
