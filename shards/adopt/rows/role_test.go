package rows_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// TestWithoutSuperuser adopts with a role that may make roles, and is a member of that which owns the tables. A service has some rights on them.
func TestWithoutSuperuser(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, localpg.Config{}) // of its own: another role would have made the role kiloshard_adopt
	text, err := server.CreateDatabase(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	host := shards.Host{Name: "pg-a", DSN: text}
	parsed, err := dsn.Parse(text)
	if err != nil {
		t.Fatal("the server's DSN cannot be parsed")
	}
	b := &bundle{t: t, host: host, conn: pgtest.Connect(t, text)}
	const adopter, owner, service1 = "adopter", "owner", "service"
	password := " password '" + parsed.Get("password") + "'"
	b.run("create role " + owner + "; create role " + service1 + " login" + password + "; create role " + adopter + " login createrole" + password + " in role " + owner)
	b.run("grant all on database " + parsed.Get("dbname") + " to " + adopter + "; grant create on schema public to " + owner + ", " + adopter + "; set role " + owner + ";" + service + "reset role")
	b.run("grant select, insert, update, delete on users, albums, photos, tags to " + service1 + "; grant select (follower) on follows to " + service1 + "; grant usage on all sequences in schema public to " + service1)
	b.host = shards.Host{Name: "pg-a", DSN: dsn.With(host.ConnString(), "user", adopter)}
	if b.m, err = mapOf(b.host, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: b.m}); err != nil {
		t.Fatal(err)
	}
	file, err := adopt.ParseFile("adopt.yaml", []byte(decisions))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := views.Make(t.Context(), views.Config{Map: b.m, File: file, Text: decisions}); err != nil {
		t.Fatal(err)
	}
	before := b.dump()
	write := func() {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn.With(host.ConnString(), "user", service1))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		const statements = `set search_path = shard_00001, public; update users set country = 'nl' where id = 5; insert into albums (user_id) values (5);
			insert into photos (album_id, title) select max(id), 'new' from albums where user_id = 5; delete from albums where id = (select min(id) from albums where user_id = 5)`
		if _, err := pgtest.Run(t.Context(), conn, statements); err != nil {
			t.Errorf("the service: %v", err)
		}
		if _, err := pgtest.Run(t.Context(), conn, "select followee from follows"); code(err) != "42501" {
			t.Errorf("the service reads what it may not: %v", err)
		}
	}
	write()
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	write()
	b.checkShards(t)
	if found := b.run("select distinct pg_get_userbyid(relowner) from pg_class where relnamespace = 'shard_00001'::regnamespace and relname in ('users', 'photos')"); len(found) != 1 || found[0] != owner {
		t.Errorf("the tables belong to %q, expected %s", found, owner)
	}
	if _, err := rows.Back(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	write()
	if after := b.dump(); after != before {
		t.Errorf("the structure has changed: %s", difference(before, after))
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.Drop = func([]string) error { return nil }
	if f, err := rows.Finish(t.Context(), cfg); err != nil || len(f.Dropped) != 6 {
		t.Errorf("got %+v, %v", f, err)
	}
	write()
}
