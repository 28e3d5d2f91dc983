package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

// collisions are files that collide with another transaction. It ends once the file waits for it.
var collisions = []struct{ name, other, sql, want string }{
	{"rights", "grant usage on schema shard_00001 to pg_monitor", "grant usage on schema {{.schema}} to pg_read_all_stats", "pg_monitor, pg_read_all_stats"},
	{"names", "create table shard_00001.b ()", "create table if not exists b (id int)", ""},
	{"a function", "create function shard_00001.f() returns int language sql as 'select 1'", "create or replace function f() returns int language sql as 'select 2'", ""},
}

// What collides with others by chance is rolled back and run again, all of the file.
func TestCollisions(t *testing.T) {
	t.Parallel()
	for _, test := range collisions {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_a.sql", "create table a (id int);\ninsert into a values (1);\n"+test.sql)
			report := collide(t, b, test.other)
			equal(t, "tried again", report.TriedAgain, 1)
			equal(t, "rows", b.value(1, "select count(*) from a"), "1")
			if test.want != "" {
				equal(t, "rights", b.value(1, "select string_agg(grantee::regrole::text, ', ' order by 1) from pg_namespace, aclexplode(nspacl) where nspname = 'shard_00001' and grantee <> nspowner"), test.want)
			}
		})
	}
}

// A file that runs once a host collides with others likewise.
func TestCollisionOfASharedFile(t *testing.T) {
	t.Parallel()
	b := setupShared(t, 2, 1, "001_a.sql", once+"create table app.a (id int); grant usage on schema app to pg_monitor")
	b.execHost(b.m.Host(0), "create schema app")
	report := collide(t, b, "grant usage on schema app to pg_read_all_stats")
	equal(t, "tried again", report.TriedAgain, 1)
	equal(t, "once a host", len(report.Shared), 1)
	b.cfg.Retries = -1
	b.cfg.Files = files("001_a.sql", once+"create table app.a (id int); grant usage on schema app to pg_monitor", "002_b.sql", once+"do $$ begin raise exception 'x' using errcode = '40001'; end $$")
	if report, err := migrate.Up(t.Context(), b.cfg); err == nil || report.TriedAgain != 0 {
		t.Errorf("without retries: tried again %d times, %v", report.TriedAgain, err)
	}
}

// collide has another session begin a transaction, and end it once a migration waits for it.
func collide(t *testing.T, b *bundle, other string) migrate.Report {
	t.Helper()
	holder := b.connect(b.m.Host(1))
	if _, err := holder.Exec(t.Context(), "begin; "+other); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		report migrate.Report
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		report, err := migrate.Up(t.Context(), b.cfg)
		ended <- outcome{report, err}
	}()
	waitFor(t, b, "select count(*) = 1 from pg_locks where not granted and locktype = 'transactionid' and pid in (select pid from pg_stat_activity where datname = current_database())")
	if _, err := holder.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	got := <-ended
	if got.err != nil {
		t.Errorf("tried again %d times: %v", got.report.TriedAgain, got.err)
	}
	return got.report
}

// A deadlock that Postgres ends by the migration's error is a collision, too.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_a.sql", "create table a (); create table b ()", "002_b.sql", `
		lock table a;
		do $$ begin
			while not exists (select from pg_locks where not granted and relation = 'a'::regclass) and exists (select from pg_locks where relation = 'b'::regclass) loop
				perform pg_sleep(0.01);
			end loop;
		end $$;
		lock table b`)
	b.cfg.To = 1
	b.up()
	b.cfg.To = 0
	holder := b.connect(b.m.Host(0))
	if _, err := holder.Exec(t.Context(), "begin; set local deadlock_timeout = '1h'; lock table shard_00000.b"); err != nil {
		t.Fatal(err)
	}
	others := make(chan error, 1)
	b.cfg.Events = func(e migrate.Event) {
		if e.Kind != migrate.PhaseBegan {
			return
		}
		go func() {
			waitFor(t, b, "select count(*) > 0 from pg_locks where relation = 'shard_00000.a'::regclass and mode = 'AccessExclusiveLock'")
			_, err := holder.Exec(t.Context(), "lock table shard_00000.a; commit")
			others <- err
		}()
	}
	report := b.up()
	equal(t, "tried again", report.TriedAgain, 1)
	if err := <-others; err != nil {
		t.Error(err)
	}
}

// Where shards collide since they all leave, the error says that they leave.
func TestCollisionsOfFilesThatLeave(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_a.sql", "create or replace function public.f() returns int language sql as 'select 2'")
	holder := b.connect(b.m.Host(1))
	if _, err := holder.Exec(t.Context(), "begin; create function public.f() returns int language sql as 'select 1'"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := migrate.Up(t.Context(), b.cfg)
		ended <- err
	}()
	waitFor(t, b, "select count(*) = 2 from pg_locks where not granted and locktype = 'transactionid' and pid in (select pid from pg_stat_activity where datname = current_database())")
	if _, err := holder.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, migrate.ErrLeftShard) || strings.Contains(err.Error(), "SQLSTATE") {
		t.Errorf("got %v", err)
	}
}

// There is a limit, and a file that runs outside a transaction runs once.
func TestCollisionsThatAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	const fails = "do $$ begin perform nextval('public.tries'); raise exception 'tuple concurrently updated' using errcode = 'XX000'; end $$"
	for _, test := range []struct {
		name, sql, tries string
		retries          int
	}{
		{"more often than the limit", fails, "4", 3},
		{"without retries", fails, "1", -1},
		{"outside a transaction", "---- tern: disable-tx ----\n" + fails, "1", 3},
		{"another error of that kind", strings.Replace(fails, "concurrently updated", "broken", 1), "1", 3},
		{"a row that is there", "do $$ begin perform nextval('public.tries'); create table a (id int primary key); insert into a values (1), (1); end $$", "1", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, 1, "001_a.sql", test.sql)
			b.execHost(b.m.Host(0), "create sequence public.tries")
			b.cfg.Retries = test.retries
			report, _ := b.upFails()
			equal(t, "tries", b.value(0, "select last_value from public.tries"), test.tries)
			equal(t, "tried again", report.TriedAgain, int(test.tries[0]-'1'))
		})
	}
}
