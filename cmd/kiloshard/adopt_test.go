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
	lines := append(strings.Split(strings.TrimSpace(p["sh"][0]), "\n"), strings.Split(strings.TrimSpace(p["sh"][1]), "\n")...)
	if len(lines) != 6 {
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
	n.writes("kiloshard.yaml", strings.Replace(p[""][1], "old_ids_below: 1099511627776\n", "", 1))
	n.types(lines[2])
	if out := n.types(lines[3] + " || test $? = 2"); !strings.Contains(out, "old_ids_below: missing; expected old_ids_below: ") {
		t.Errorf("without old_ids_below, views prints\n%s", out)
	}
	n.writes("kiloshard.yaml", p[""][1])
	if out := n.types(lines[3]); !strings.Contains(out, "64 shards of views on 5 tables made") {
		t.Errorf("views prints\n%s", out)
	}
	exec("insert into shard_00007.users (id, email) values (71, 'new'); insert into shard_00007.albums (user_id) values (71); set application_name = 'cron'; insert into public.jobs default values; insert into albums (user_id) values (3)")
	if out := n.types(lines[4] + " --rows"); !strings.Contains(out, "Gate views") || !strings.Contains(out, "public.albums  postgres  cron") || !strings.Contains(out, "Rows without a shard: public.events 1") {
		t.Errorf("status prints\n%s", out)
	}
	if out := n.types(lines[0]); !strings.Contains(out, "adopt.yaml is as it was") {
		t.Errorf("the plan of an adopted database prints\n%s", out)
	}
	if out := n.types(lines[5]); !strings.Contains(out, "The views of 64 shards are gone") {
		t.Errorf("back prints\n%s", out)
	}
	if out := n.types(lines[5]); !strings.Contains(out, "Nobody adopts this database") {
		t.Errorf("back prints the second time\n%s", out)
	}
	if out := n.types("kiloshard adopt views; if kiloshard adopt tables --quiet-for 0s; then false; else test $? = 2; fi"); out == "" {
		t.Error("tables with a table that cannot be mirrored prints nothing")
	}
	n.types(lines[5])
	n.writes("adopt.yaml", strings.NewReplacer(`is: chained, through: "photo_id->public.photos", keyless: left`, "is: left").Replace(p[""][0]))
	n.types(lines[3])
	for i, line := range strings.Split(strings.TrimSpace(p["sh"][2]), "\n") {
		if out := n.types(line + " --quiet-for 0s"); !strings.Contains(out, []string{"Gate closed", "Gate tables"}[i]) {
			t.Errorf("%s prints\n%s", line, out)
		}
	}
	if out := n.types(strings.TrimSpace(p["sh"][3]) + " --yes"); !strings.Contains(out, "kiloshard_adopt_old") {
		t.Errorf("finish prints\n%s", out)
	}
	for _, page := range []string{"plan.html", "queries.html"} {
		if text := readPage(t, n.dir+"/"+page); !strings.Contains(text, "</html>") {
			t.Errorf("%s is %s", page, text)
		}
	}
}
