package views_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// service is a photo service that began with one database.
const service = `
	create table countries (code text primary key, name text);
	create table users (id bigserial primary key, email text not null unique, country text references countries);
	create table albums (id bigserial primary key, user_id bigint not null references users, title text not null default 'untitled');
	create table photos (id serial primary key, album_id bigint not null references albums on delete cascade, title text);
	insert into countries values ('nl', 'Netherlands');
	insert into users (email, country) select 'u' || n || '@example.org', 'nl' from generate_series(1, 50) n;
	insert into albums (user_id) select 1 + n % 50 from generate_series(1, 200) n;
	insert into photos (album_id) select 1 + n % 200 from generate_series(1, 1000) n;
`

// head is the beginning of a file of decisions.
const head = "key: public.users.id\nstrategy: {by: modulo}\ntables:\n"

// bundle is a database of four shards that is adopted.
type bundle struct {
	t    *testing.T
	m    *shards.Map
	conn *pgx.Conn // of the superuser, with search_path public
	text string    // of adopt.yaml
}

// setup returns a database in which the statements were run, with shards, before gate 1.
func setup(t *testing.T, statements string) *bundle {
	t.Helper()
	return setupWith(t, statements, func(*shards.Config) {})
}

// setupWith is setup with a changed config.
func setupWith(t *testing.T, statements string, change func(*shards.Config)) *bundle {
	t.Helper()
	return setupOn(t, shardtest.Hosts(t, 1)[0], statements, change)
}

// setupOn is setupWith in the database of a host.
func setupOn(t *testing.T, host shards.Host, statements string, change func(*shards.Config)) *bundle {
	t.Helper()
	c := shardtest.MapConfig(4, []shards.Host{host})
	c.SearchPath, c.OldIDsBelow = []string{"public"}, 1<<40
	change(&c)
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, m: m, conn: pgtest.Connect(t, host.ConnString()), text: head}
	b.run(statements)
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	return b
}

// adopted is setup, and gate 1.
func adopted(t *testing.T, statements, file string) *bundle {
	t.Helper()
	b := setup(t, statements)
	b.text += file
	b.make()
	return b
}

func (b *bundle) config() views.Config {
	b.t.Helper()
	f, err := adopt.ParseFile("adopt.yaml", []byte(b.text))
	if err != nil {
		b.t.Fatal(err)
	}
	return views.Config{Map: b.m, File: f, Text: b.text}
}

func (b *bundle) make() views.Report {
	b.t.Helper()
	report, err := views.Make(b.t.Context(), b.config())
	if err != nil {
		b.t.Fatal(err)
	}
	return report
}

// run runs statements as the old code does, and returns what the last one returns, with a space between columns.
func (b *bundle) run(statements string) []string {
	b.t.Helper()
	return run(b.t, b.conn, statements)
}

func run(t *testing.T, conn *pgx.Conn, statements string) []string {
	t.Helper()
	found, err := pgtest.Run(t.Context(), conn, statements)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// router returns a router of the shards.
func (b *bundle) router() *router.Router {
	b.t.Helper()
	r, err := router.New(b.t.Context(), router.Config{Map: b.m})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(r.Close)
	return r
}

// shard returns the shard of a user.
func (b *bundle) shard(r *router.Router, user int64) router.Shard {
	b.t.Helper()
	s, err := r.ForKey(b.t.Context(), shards.NumberKey(user))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// value returns the one value of a query, as text.
func value(t *testing.T, s router.Shard, query string, args ...any) string {
	t.Helper()
	var v any
	if err := s.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(v)
}
