package views_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// role makes a role that can log in, for the test alone, and returns it in quotes.
func (b *bundle) role(name, attributes string) string {
	b.t.Helper()
	quoted := pgx.Identifier{name + "_" + strings.TrimPrefix(b.run("select current_database()")[0], "kiloshard_")}.Sanitize()
	super := b.m.Hosts()[0].ConnString()
	parsed, err := dsn.Parse(super)
	if err != nil {
		b.t.Fatal("the server's DSN cannot be parsed")
	}
	b.run("create role " + quoted + " login " + attributes + " password '" + parsed.Get("password") + "'")
	b.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), super)
		if err != nil {
			b.t.Error(err)
			return
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for _, statement := range []string{"reassign owned by " + quoted + " to postgres", "drop owned by " + quoted, "drop role " + quoted} {
			if _, err := conn.Exec(context.Background(), statement); err != nil {
				b.t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return quoted
}

// as returns a session of a role, with the path that the router has for shard 3.
func (b *bundle) as(role string) *pgx.Conn {
	b.t.Helper()
	conn := pgtest.Connect(b.t, b.dsn(role))
	run(b.t, conn, "set search_path = shard_00003, public")
	return conn
}

func (b *bundle) dsn(role string) string {
	return dsn.With(b.m.Hosts()[0].ConnString(), "user", strings.Trim(role, `"`))
}

func denied(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := pgtest.Run(t.Context(), conn, statement)
		if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: got %v, expected insufficient_privilege", statement, err)
		}
	}
}

// TestRights holds that a role can do with a view what it can do with the old table, and no more, and that policies apply.
func TestRights(t *testing.T) {
	t.Parallel()
	b := setup(t, service)
	reader, writer, nobody := b.role("reader", ""), b.role("writer", ""), b.role("nobody", "")
	b.run(fmt.Sprintf(`grant select on users, albums to %[1]s; grant select (id, album_id) on photos to %[1]s;
		grant select, insert, update, delete on users, albums, photos to %[2]s; grant usage on all sequences in schema public to %[2]s;
		create policy mine on albums to %[2]s using (title <> 'secret') with check (title <> 'forbidden'); create policy theirs on albums for select to %[1]s using (true);
		alter table albums enable row level security; insert into albums (id, user_id, title) values (1001, 7, 'secret')`, reader, writer))
	b.text += "- {table: public.photos, is: chained, through: photos_album_id_fkey, copy: true}\n"
	b.make()
	r, w, n := b.as(reader), b.as(writer), b.as(nobody)
	run(t, r, "select * from users; select * from albums; select id from public.photos")
	denied(t, r, "select id from photos", "select title from photos", // a view reads all columns
		"insert into users (id, email) values (103, 'x')", "update albums set title = 'x'", "delete from albums", "select next_id()")
	run(t, w, "insert into users (id, email) values (103, 'x'); insert into albums (user_id) values (103); insert into photos (album_id) select id from albums where user_id = 103; update photos set title = 'y'")
	run(t, w, "begin; insert into photos (album_id) select max(id) from albums; rollback")
	if got := run(t, w, "select count(*) from albums where title = 'secret'"); got[0] != "0" {
		t.Error("a policy does not apply to the view")
	}
	denied(t, w, "insert into albums (user_id, title) values (7, 'forbidden')")
	b.run("grant usage on schema shard_00003 to public; grant all on all tables in schema shard_00003 to public")
	denied(t, n, "select * from shard_00003.users", "insert into shard_00003.albums (user_id) values (7)", "insert into shard_00003.photos (album_id) values (1)",
		"select * from kiloshard_adopt.adoption", "insert into kiloshard_adopt.old_writes values ('albums', 'x', 'y', now())", "set role kiloshard_adopt")
	run(t, w, "set search_path = public; set application_name = 'old'; update photos set title = 'z' where id = 1") // and it needs no rights to be recorded
	if got := b.written(); len(got) != 1 || !strings.HasSuffix(got[0], " old") {
		t.Errorf("recorded %q", got)
	}
}

// TestAdopterIsNoSuperuser holds that a role which owns the old tables and the database, and has CREATEROLE, can go to gate 1 and back.
func TestAdopterIsNoSuperuser(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, localpg.Config{}) // of its own: another role would have made the role kiloshard_adopt
	text, err := server.CreateDatabase(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	b := setupOn(t, shards.Host{Name: "pg-a", DSN: text}, service, func(*shards.Config) {})
	owner := b.role("owner", "createrole")
	database := b.run("select quote_ident(current_database())")[0]
	b.run(fmt.Sprintf("drop schema kiloshard, kiloshard_locks, shard_00000, shard_00001, shard_00002, shard_00003 cascade; alter database %s owner to %s; alter table countries owner to %[2]s; alter table albums owner to %[2]s; alter table photos owner to %[2]s", database, owner))
	c := b.m.Config()
	c.Hosts = []shards.Host{{Name: "pg-a", DSN: b.dsn(owner)}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	b.m = m
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	b.run("grant select on users to " + owner)
	if _, err := views.Make(t.Context(), b.config()); err == nil || !strings.Contains(err.Error(), "tables: public.users of role postgres; expected tables of the role of this command") {
		t.Errorf("with a table of another role: %v", err)
	}
	b.run("alter table users owner to " + owner)
	before := b.dump()
	b.make()
	if got := value(t, b.shard(b.router(), 7), "insert into albums (user_id) values (7) returning title"); got != "untitled" {
		t.Errorf("got %s", got)
	}
	b.make()
	if _, err := views.Back(t.Context(), views.BackConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	if after := b.dump(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
