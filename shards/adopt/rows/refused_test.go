package rows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

func code(err error) string {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return pg.Code
	}
	return "none"
}

// TestRefused holds that an old table takes no write of a row that is in a table of a shard, with any settings of the session, and that a shard's table
// takes no row of another.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	cfg := b.config()
	cfg.Shards = shards.SetOf(1)
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, settings := range []string{
		"set search_path = shard_00001, public", "set search_path = shard_00001; set kiloshard_adopt.mirror = 'on'; set session_replication_role = replica",
		"set search_path = shard_00001; set application_name = 'kiloshard adopt'; set role pg_database_owner; set kiloshard.adopt = '1'; reset role",
		"set search_path = kiloshard_adopt_1, shard_00001",
	} {
		conn := pgtest.Connect(t, b.host.ConnString())
		if _, err := pgtest.Run(t.Context(), conn, settings); err != nil {
			t.Fatal(err)
		}
		for statement, want := range map[string]string{
			"update public.users set country = null where id = 5": "KSA02", "delete from public.albums where id = 4": "KSA02",
			"insert into public.albums (user_id) values (5)": "KSA02", "update public.photos set title = 'x' where id = 3": "KSA02",
			"delete from public.tags where photo_id = 3": "KSA02", "truncate public.tags": "KSA01", "truncate public.users cascade": "KSA01",
			"update public.albums set user_id = 6 where id = 4": "44000", "update public.albums set user_id = 5 where id = 5": "44000",
			"update public.users set country = 'nl' where id = 6": "none",
		} {
			if _, err := pgtest.Run(t.Context(), conn, statement); code(err) != want {
				// The old way is refused first in a session whose first schema is no shard's.
				if code(err) == "KSA01" && strings.HasPrefix(settings, "set search_path = kiloshard_adopt_1") {
					continue
				}
				t.Errorf("%s; %s: got %v, expected %s", settings, statement, err, want)
			}
		}
	}
	b.checkShardsOf(t, 1)
	old := pgtest.Connect(t, b.host.ConnString())
	for _, statement := range []string{
		"update users set country = null where id = 6", "insert into albums (user_id) values (6)", "delete from tags where photo_id = 1", "with d as (delete from tags returning 1) select count(*) from d",
	} {
		if _, err := pgtest.Run(t.Context(), old, statement); code(err) != "KSA01" {
			t.Errorf("%s the old way: got %v, expected KSA01", statement, err)
		}
	}
	if found, err := pgtest.Run(t.Context(), old, "select count(*) from users"); err != nil || found[0] != "40" {
		t.Errorf("an old reader gets %v, %v", found, err)
	}
	inside := b.in(1)
	for statement, want := range map[string]string{
		"insert into albums (user_id) values (6)": "23503", "update albums set user_id = 6 where id = 4": "23503", "truncate tags": "KSA01",
		"insert into users (id, email) values (2, 'x')": "44000", "insert into users (id, email) values (45, 'u6@example.org')": "23505",
		"insert into users (id, email, country) values (45, 'u45', 'xx')": "23503", "insert into photos (id, album_id, title) values (1, 4, 'x')": "23505",
		"insert into photos (album_id, title) values (5, 'x')": "23503", "insert into photos (album_id, title) values (4, '')": "23514",
		"update albums set user_id = 9 where id = 4": "none", "insert into albums (user_id) values (5)": "none",
	} {
		if _, err := pgtest.Run(t.Context(), inside, statement); code(err) != want {
			t.Errorf("%s in the shard: got %v, expected %s", statement, err, want)
		}
	}
	b.checkShardsOf(t, 1)
}

// checkShardsOf compares one shard's table of users and albums with the old ones.
func (b *bundle) checkShardsOf(t *testing.T, n shards.Number) {
	t.Helper()
	schema := b.m.Schema(n)
	for _, query := range []string{
		"select t.* from public.users t where id % 4 = 1 except all select * from " + schema + ".users", "select * from " + schema + ".users except all select t.* from public.users t where id % 4 = 1",
		"select t.* from public.albums t where user_id % 4 = 1 except all select * from " + schema + ".albums", "select * from " + schema + ".albums except all select t.* from public.albums t where user_id % 4 = 1",
	} {
		if found := b.run(query); len(found) > 0 {
			t.Errorf("%s: %q", query, found)
		}
	}
}

// TestNotQuiet holds that the old tables stay open while a client writes the old way, and that changes of another program are named.
func TestNotQuiet(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	check := func(cfg rows.Config, want string) {
		t.Helper()
		result, err := rows.Tables(t.Context(), cfg)
		if wrong := (*rows.CheckError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %s", err, want)
		}
		if result.Gate != "views" || result.Tables.Len() > 0 {
			t.Errorf("got %+v", result)
		}
		b.run("update users set country = 'nl' where id = 1")
	}
	quiet := b.config()
	quiet.QuietFor = time.Hour
	check(quiet, "which is less than 1h0m0s ago")
	check(quiet, "wrote to public.users without a shard's path")
	b.run("alter table albums add note text")
	check(b.config(), "public.albums: column note was added: text")
	b.run("alter table albums drop note; create index later on photos (title)")
	check(b.config(), "public.photos: index later was added")
	b.run("drop index later; alter table users add constraint positive check (balance > -1) not valid")
	check(b.config(), "expected alter table … validate constraint, or drop constraint, before")
	b.run("alter table users drop constraint positive")
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Error(err)
	}
}

// TestChangedMeanwhile holds that a shard keeps its views if another program has changed the structure since the copy began.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	cfg, done := b.config(), false
	report := cfg.Report
	cfg.Report = func(e rows.Event) {
		if report(e); e.Kind == rows.Compared && !done {
			done = true
			b.run("alter table public.albums add note text default 'x'")
		}
	}
	result, err := rows.Tables(t.Context(), cfg)
	if wrong := (*rows.CheckError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "public.albums: column note was added") || result.Tables.Len() > 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	b.run("alter table public.albums drop note")
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Error(err)
	}
}
