package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

func (b *bundle) status(rows bool) *views.State {
	b.t.Helper()
	s, err := views.Status(b.t.Context(), views.StatusConfig{Map: b.m, Rows: rows})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// written returns the tables and applications of writes that came without a shard's path.
func (b *bundle) written() []string {
	b.t.Helper()
	var found []string
	for _, w := range b.status(false).OldWrites {
		found = append(found, w.Table+" "+w.Role+" "+w.Application)
	}
	slices.Sort(found)
	return found
}

// TestStatus holds that writes without a shard's path are named by table, role and application, and those by way of the router are not, nor are
// those that a cascade of one makes.
func TestStatus(t *testing.T) {
	t.Parallel()
	b := adopted(t, service+`
		create table log (at timestamptz not null, user_id bigint not null references users) partition by range (at);
		create table log_1 partition of log for values from ('2026-01-01') to ('2027-01-01');
		create table "Odd ""one" (user_id bigint not null references users);
	`, "")
	s := b.shard(b.router(), 7)
	for _, statement := range []string{
		"insert into albums (id, user_id) values (1001, 7)", "insert into photos (album_id) values (1001)", "update albums set title = 'x' where id = 1001",
		"delete from albums where id = 1001", "insert into log values ('2026-05-01', 7)", "select * from albums",
	} {
		if _, err := s.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if got := b.written(); len(got) > 0 {
		t.Errorf("the router's writes are recorded: %q", got)
	}
	old := pgtest.Connect(t, b.m.Hosts()[0].ConnString())
	run(t, old, `set application_name = 'cron'; insert into albums (user_id) values (7); select * from photos;
		update log_1 set user_id = 8; copy "Odd ""one" from program 'echo 7'; set application_name = 'api'; truncate photos cascade`)
	run(t, old, `begin; delete from users where id = 500; rollback; set default_transaction_read_only = on; select * from users`)
	want := []string{`public."Odd ""one" postgres cron`, "public.albums postgres cron", "public.log postgres cron", "public.photos postgres api"}
	if got := b.written(); !slices.Equal(got, want) {
		t.Errorf("recorded %q, expected %q", got, want)
	}
}

// TestWritersDoNotWait holds that two transactions that write the old way, and are open, do not wait for each other, at any isolation level.
func TestWritersDoNotWait(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		one, two := pgtest.Connect(t, b.m.Hosts()[0].ConnString()), pgtest.Connect(t, b.m.Hosts()[0].ConnString())
		for _, conn := range []struct {
			statements string
			number     int
		}{
			{"set lock_timeout = '1s'; begin isolation level " + level + "; insert into albums (user_id) values (1)", 1},
			{"set lock_timeout = '1s'; begin isolation level " + level + "; insert into albums (user_id) values (2); update albums set title = 'x' where id = 2", 2},
			{"update albums set title = 'x' where id = 1; commit", 1},
			{"commit", 2},
		} {
			session := one
			if conn.number == 2 {
				session = two
			}
			run(t, session, conn.statements)
		}
	}
	run(t, pgtest.Connect(t, b.m.Hosts()[0].ConnString()), "set session_replication_role = replica; set application_name = 'replica'; insert into photos (album_id) values (1)")
	if got := b.written(); !slices.Contains(got, "public.photos postgres replica") {
		t.Errorf("recorded %q", got)
	}
}

// TestMigrationsAreNamed holds that what the old tool changes is named, and is no longer once the views are made again.
func TestMigrationsAreNamed(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	if got := b.status(false).Changes; len(got) > 0 {
		t.Errorf("nothing has changed: %q", got)
	}
	b.run("alter table albums add cover text; create index on photos (title); create table likes (photo_id int not null references photos, primary key (photo_id))")
	want := []string{
		`public.albums: column cover was added: text collate "default"`, "public.likes: table was added: r p, owner postgres",
		"public.photos: index photos_title_idx was added: CREATE INDEX photos_title_idx ON public.photos USING btree (title)",
	}
	if got := b.status(false).Changes; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	b.text += "- {table: public.likes, is: chained, through: likes_photo_id_fkey}\n"
	b.make()
	if got := b.status(false); len(got.Changes) > 0 || !strings.HasPrefix(got.History[len(got.History)-1].What, "views of 4 shards") {
		t.Errorf("got %+v", got)
	}
}

// TestKeyless holds that rows without a key are in no shard, and are counted.
func TestKeyless(t *testing.T) {
	t.Parallel()
	b := adopted(t, service+"create table events (user_id bigint references users, what text); insert into events select nullif(n, 5), 'x' from generate_series(1, 10) n;",
		"- {table: public.events, is: keyed, by: user_id, keyless: left}\n")
	if got := b.status(true).Keyless; len(got) != 1 || got[0].Rows != 1 || got[0].Table.Table != "events" {
		t.Errorf("got %+v", got)
	}
	if got := b.run("select (select count(*) from shard_00000.events) + (select count(*) from shard_00001.events) + (select count(*) from shard_00002.events) + (select count(*) from shard_00003.events)"); got[0] != "9" {
		t.Errorf("%s rows are in shards", got)
	}
	_, err := b.shard(b.router(), 7).Exec(t.Context(), "insert into events (what) values ('nobody')")
	refused(t, "a row without a key", err)
}
