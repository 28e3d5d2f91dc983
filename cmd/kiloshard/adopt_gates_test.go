package main

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestAdoptGates adopts a database with the commands alone, and then migrates its shards and moves one to a second host.
func TestAdoptGates(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 3)
	exec := func(host int, statements string) string {
		t.Helper()
		results, err := pgtest.Connect(t, hosts[host].ConnString()).PgConn().Exec(t.Context(), statements).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", statements, err)
		}
		if last := results[len(results)-1]; len(last.Rows) > 0 {
			return string(last.Rows[0][0])
		}
		return ""
	}
	const touch = `create function touch() returns trigger language plpgsql as $$ begin new.updates := new.updates + 1; return new; end $$;`
	exec(0, touch+`
		create table users (id bigserial primary key, email text not null unique, updates int not null default 0);
		create table albums (id bigserial primary key, user_id bigint not null references users on delete cascade);
		create table photos (id serial primary key, album_id bigint not null references albums on delete cascade, title text default 'untitled');
		create index by_title on photos (title);
		create trigger touch before update on users for each row execute function touch();
		insert into users (id, email) select n, n::text from generate_series(1, 20) n;
		insert into albums (user_id) select 1 + n % 20 from generate_series(1, 60) n;
		insert into photos (album_id) select 1 + n % 60 from generate_series(1, 180) n;`)
	exec(1, touch)
	n := newNewcomer(t)
	n.env = append(n.env, "PG_A_DSN="+hosts[0].ConnString(), "PG_B_DSN="+hosts[1].ConnString(), "PG_C_DSN="+hosts[2].ConnString())
	config := func(hosts string) string {
		return "cluster: photos\nshards: 4\nepoch: 2026-01-01T00:00:00Z\nhosts:\n  - {name: pg-a, dsn: \"${PG_A_DSN}\"}\n" + hosts +
			"placement:\n  - {shards: 0-3, host: pg-a}\nsearch_path: [public]\nold_ids_below: 1000000\nmigrations: ./migrations\n"
	}
	n.writes("kiloshard.yaml", config(""))
	n.writes("adopt.yaml", "key: public.users.id\nstrategy: {by: modulo}\ntables: []\n")
	says := func(line string, want ...string) {
		t.Helper()
		out := n.types("exec 2>&1; " + line)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s prints\n%s\nexpected %s", line, out, w)
			}
		}
	}
	says("kiloshard create")
	says("if kiloshard adopt tables --quiet-for 0s; then false; else test $? = 2; fi", "not being adopted")
	says("kiloshard adopt views")
	says("if kiloshard adopt tables; then false; else test $? = 2; fi", "which is less than 1h0m0s ago")
	says("kiloshard adopt tables --shards 1 --quiet-for 0s", "Gate closed", "1 shard with tables of their own (1), 3 without")
	says("kiloshard adopt tables --quiet-for 0s", "Gate tables", "4 shards with tables of their own (0-3), 0 without", "001_adopted.sql has their structure")
	says("cat migrations/001_adopted.sql", "CREATE TABLE {{.schema}}.albums", "by_title", "EXECUTE FUNCTION public.touch()")
	if out := n.types("cat migrations/001_adopted.sql"); strings.Contains(out, "kiloshard_adopt") {
		t.Errorf("the migration has what adopts:\n%s", out)
	}
	// Another adoption, of another structure, does not take the migration of the first for its own.
	says("kiloshard adopt back")
	exec(0, "alter table photos add column taken_at date")
	says("kiloshard adopt views")
	says("if kiloshard adopt tables --quiet-for 0s; then false; else test $? = 3; fi", "001_adopted.sql has another structure than shards 0-3; expected theirs")
	says("rm migrations/001_adopted.sql; kiloshard adopt tables --quiet-for 0s", "001_adopted.sql has their structure")
	says("cat migrations/001_adopted.sql", "taken_at")
	says("kiloshard adopt status", "Gate tables")
	says("kiloshard migrate status", "4")
	n.writes("migrations/002_likes.sql", "create table likes (album_id bigint references albums);\n---- create above / drop below ----\ndrop table likes;\n")
	says("kiloshard migrate up", "4 shards 1→2")
	n.writes("kiloshard.yaml", config("  - {name: pg-b, dsn: \"${PG_B_DSN}\"}\n"))
	says("kiloshard create")
	says("! kiloshard move 1 --to pg-b --login-with-password", "expected kiloshard adopt finish before")
	says("if kiloshard adopt finish; then false; else test $? = 2; fi", "expected --yes")
	says("kiloshard adopt finish --yes --keep-for 1h", "kiloshard_adopt_old")
	says("if kiloshard adopt back; then false; else test $? = 2; fi", "finished")
	says("kiloshard adopt finish --yes --keep-for 0s", "Dropped: kiloshard_adopt_old.albums")
	says("kiloshard exec 'insert into photos (album_id) select min(id) from albums' --shards 1", "1")
	says("kiloshard move 1 --to pg-b --login-with-password")
	if got := exec(1, "select count(*) from shard_00001.photos"); got != "46" {
		t.Errorf("the second host has %s photos, expected 46", got)
	}
	if got := exec(1, "select increment_by from pg_sequences where schemaname = 'shard_00001' and sequencename = 'photos_id_seq'"); got != "5" {
		t.Errorf("the sequence on the second host goes on by %s, expected 5", got)
	}
	exec(1, "update shard_00001.users set email = 'x' where id = 1")
	if got := exec(1, "select updates from shard_00001.users where id = 1"); got != "1" {
		t.Errorf("the trigger has counted %s updates, expected 1", got)
	}
	says("kiloshard verify")
	says("kiloshard migrate drift")

	// The migrations make shards in a database that was never adopted.
	exec(2, touch)
	n.writes("fresh/kiloshard.yaml", strings.NewReplacer("photos", "fresh", "PG_A_DSN", "PG_C_DSN", "./migrations", "../migrations").Replace(config("")))
	says("cd fresh && kiloshard create && kiloshard migrate up", "4 shards 0→2")
	for _, schema := range []string{"shard_00000", "shard_00001", "shard_00002", "shard_00003"} {
		exec(2, "set search_path = "+schema+", public; insert into users (id, email) values (1, 'x'); insert into albums (user_id) values (1); insert into photos (album_id) select a.id from albums a, generate_series(1, 3)")
	}
	if got := exec(2, "select count(distinct id) from (table shard_00000.photos union all table shard_00001.photos union all table shard_00002.photos union all table shard_00003.photos) p"); got != "12" {
		t.Errorf("12 photos have %s IDs", got)
	}
}
