package rows_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// service is a photo service that began with one database.
const service = `
	create table countries (code text primary key, name text);
	create table users (id bigint primary key, email text not null unique, country text references countries, balance bigint not null default 0,
		updated_at timestamptz not null default clock_timestamp(), updates int not null default 0);
	create table albums (id bigserial primary key, user_id bigint not null references users on delete cascade, title text not null default 'untitled', photos int not null default 0);
	create table photos (id bigserial primary key, album_id bigint not null references albums on delete cascade on update cascade, title text,
		size int generated always as (length(title)) stored, unique (album_id, title), check (title <> ''));
	alter table albums add cover bigint references photos on delete set null on update cascade;
	create table tags (photo_id bigint references photos on delete cascade on update cascade, tag text, primary key (photo_id, tag));
	create table follows (follower bigint not null references users on delete cascade, followee bigint not null references users on delete cascade, primary key (follower, followee));
	create table moves (id bigint generated always as identity primary key, user_id bigint not null references users deferrable initially deferred, amount bigint not null);
	create index photos_by_title on photos (title) where title like 'a%';
	comment on table photos is 'the photos';
	comment on column photos.title is 'the title';
	create function touch() returns trigger language plpgsql as $$ begin new.updated_at := clock_timestamp(); new.updates := new.updates + 1; return new; end $$;
	create trigger touch before update on users for each row execute function touch();
	create function count_photos() returns trigger language plpgsql as $$ begin
		if tg_op in ('INSERT', 'UPDATE') then update albums set photos = photos + 1 where id = new.album_id; end if;
		if tg_op in ('DELETE', 'UPDATE') then update albums set photos = photos - 1 where id = old.album_id; end if;
		return null; end $$;
	create trigger count_photos after insert or delete or update of album_id on photos for each row when (pg_trigger_depth() < 10) execute function count_photos();
	insert into countries values ('nl', 'Netherlands');
	insert into users (id, email, country) select n, 'u' || n || '@example.org', 'nl' from generate_series(1, 40) n;
	insert into albums (user_id) select 1 + n % 40 from generate_series(1, 160) n;
	insert into photos (album_id, title) select 1 + n % 160, 'p' || n from generate_series(1, 800) n;
	update albums a set cover = (select min(p.id) from photos p where p.album_id = a.id);
	insert into tags select n, 'tag' from generate_series(1, 800) n;
	insert into follows select n, 1 + n % 40 from generate_series(1, 40) n;
	insert into moves (user_id, amount) select 1 + n % 40, 0 from generate_series(1, 100) n;
`

// decisions is the file for the service.
const decisions = `key: public.users.id
strategy: {by: modulo}
tables:
  - {table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}
`

// bundle is a database that is adopted.
type bundle struct {
	t    *testing.T
	m    *shards.Map
	host shards.Host
	conn *pgx.Conn // of the superuser, with search_path public

	faults bool // clients go on when a connection is lost, or a disk is full
}

// setup returns a database of four shards in which the statements were run, after gate 1.
func setup(t *testing.T, statements, file string) *bundle {
	t.Helper()
	return setupOn(t, shardtest.Hosts(t, 1)[0], 4, statements, file)
}

func setupOn(t *testing.T, host shards.Host, count int, statements, file string) *bundle {
	t.Helper()
	m, err := mapOf(host, count)
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, m: m, host: host, conn: pgtest.Connect(t, host.ConnString())}
	b.run(statements)
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	f, err := adopt.ParseFile("adopt.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := views.Make(t.Context(), views.Config{Map: m, File: f, Text: file}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) config() rows.Config {
	return rows.Config{Map: b.m, Report: func(e rows.Event) { b.t.Logf("%s %s %s %s %d", e.Kind, e.Shards, e.Table, e.Text, e.Rows) }}
}

// do runs tables, back or finish in small steps.
func (b *bundle) do(what string, report func(rows.Event)) error {
	cfg := b.config()
	cfg.Batch, cfg.Group = 100, 2
	logged := cfg.Report
	cfg.Report = func(e rows.Event) {
		if logged(e); report != nil {
			report(e)
		}
	}
	return work(b.t.Context(), what, cfg)
}

// work runs tables, back or finish.
func work(ctx context.Context, what string, cfg rows.Config) (err error) {
	switch what {
	case "tables":
		_, err = rows.Tables(ctx, cfg)
	case "back":
		_, err = rows.Back(ctx, cfg)
	case "finish":
		_, err = rows.Finish(ctx, cfg)
	}
	return err
}

// run runs statements as the superuser, and returns what the last one returns, with a space between columns.
func (b *bundle) run(statements string) []string {
	b.t.Helper()
	found, err := pgtest.Run(b.t.Context(), b.conn, statements)
	if err != nil {
		b.t.Fatalf("%s: %v", statements, err)
	}
	return found
}

// in returns a session with the path of a shard.
func (b *bundle) in(n shards.Number) *pgx.Conn {
	b.t.Helper()
	conn := pgtest.Connect(b.t, b.host.ConnString())
	if _, err := conn.Exec(b.t.Context(), "set search_path = "+b.m.SearchPath(n)); err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// errStopped is the cause with which a test interrupts a command.
var errStopped = errors.New("interrupted by the test")

// until returns a config and a context for a command that is interrupted at the first event of a kind.
func (b *bundle) until(kind rows.Kind) (rows.Config, context.Context) {
	ctx, cancel := context.WithCancelCause(b.t.Context())
	b.t.Cleanup(func() { cancel(nil) })
	cfg := b.config()
	report := cfg.Report
	cfg.Report = func(e rows.Event) {
		if report(e); e.Kind == kind {
			cancel(errStopped)
		}
	}
	return cfg, ctx
}

// twin is an adopted database, and one that nobody adopts, in which the same statements were run.
type twin struct {
	b      *bundle
	plain  *pgx.Conn
	tables []string // in schema public
}

// twin makes another database with the statements.
func (b *bundle) twin(statements string, tables ...string) twin {
	b.t.Helper()
	plain := pgtest.Connect(b.t, shardtest.Hosts(b.t, 1)[0].ConnString())
	if _, err := pgtest.Run(b.t.Context(), plain, statements); err != nil {
		b.t.Fatal(err)
	}
	return twin{b, plain, tables}
}

// same runs statements in both databases, in the adopted one in a session with the path of a shard: the old tables are the same afterwards.
func (w twin) same(stage string, session *pgx.Conn, statements string) {
	t := w.b.t
	t.Helper()
	_, want := pgtest.Run(t.Context(), w.plain, statements)
	_, got := pgtest.Run(t.Context(), session, statements)
	if code(got) != code(want) {
		t.Errorf("%s: %s: got %v, expected %v", stage, statements, got, want)
	}
	if want != nil || got != nil {
		_, _ = pgtest.Run(t.Context(), w.plain, "rollback")
		_, _ = pgtest.Run(t.Context(), session, "rollback")
	}
	for _, table := range w.tables {
		query := "select t::text from public." + table + " t order by 1"
		before, err := pgtest.Run(t.Context(), w.plain, query)
		if err != nil {
			t.Fatal(err)
		}
		if after := w.b.run(query); !slices.Equal(before, after) {
			t.Fatalf("%s: %s: %s has only %q, expected only %q", stage, statements, table, without(after, before), without(before, after))
		}
	}
}
