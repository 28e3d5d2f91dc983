package main

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// adoptService is the database of which kiloshard help adopt speaks.
const adoptService = `
	create table users (id bigserial primary key, email text not null unique);
	create table albums (id bigserial primary key, user_id bigint not null references users);
	create table photos (id bigserial primary key, album_id bigint not null references albums);
	create table follows (follower bigint not null references users, followee bigint not null references users, primary key (follower, followee));
	create table events (photo_id bigint, at timestamptz);
	create table jobs (id bigserial primary key);
	insert into users (email) select n::text from generate_series(1, 10) n;
	insert into albums (user_id) select 1 + n % 10 from generate_series(1, 30) n;
	insert into photos (album_id) select 1 + n % 30 from generate_series(1, 90) n;
	insert into follows select n, 11 - n from generate_series(1, 10) n;
	insert into events select nullif(n, 1) from generate_series(1, 90) n;
`

// TestAdoptTopic runs the commands of the guide, at first without and then with its adopt.yaml.
func TestAdoptTopic(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	dsn, err := server.CreateDatabase(t.Context(), "photos")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statements string) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	exec("alter system set shared_preload_libraries = pg_stat_statements")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec("create extension pg_stat_statements; " + adoptService)
	exec("update albums set user_id = 3 where id = 2")

	p, n := topic(t, "adopt"), newNewcomer(t)
	n.env = append(n.env, "OLD_DSN="+dsn)
	lines := strings.Split(strings.TrimSpace(p["sh"][0]), "\n")
	if len(lines) != 2 {
		t.Fatalf("got the commands %q", lines)
	}
	if out := n.types(lines[0] + ` || test $? = 2`); !strings.Contains(out, "3 tables are undecided") || !strings.Contains(out, "1 call: update albums set user_id = $1 where id = $2") {
		t.Errorf("the first plan prints\n%s", out)
	}
	n.writes("adopt.yaml", p[""][0])
	if out := n.types(lines[0]); strings.Contains(out, "To decide") || !strings.Contains(out, `public.photos.album_id`) {
		t.Errorf("the second plan prints\n%s", out)
	}
	if out := n.types(lines[1]); !strings.Contains(out, "update albums set user_id = $1 where id = $2") {
		t.Errorf("the statements are\n%s", out)
	}
	for _, page := range []string{"plan.html", "queries.html"} {
		if text := readPage(t, n.dir+"/"+page); !strings.Contains(text, "</html>") {
			t.Errorf("%s is %s", page, text)
		}
	}
}
