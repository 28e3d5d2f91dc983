package queries_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/adopt/queries"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	for _, test := range []struct {
		class queries.Class
		why   string // a part of it
		sql   string
	}{
		{queries.ByKey, "by user_id", "select * from albums where user_id = $1"},
		{queries.ByKey, "by id", "select email from users where id = $1 for update"},
		{queries.ByKey, "", "select count(*) from photos p join albums a on a.id = p.album_id where a.user_id = $1 and p.title like $2"},
		{queries.ByKey, "", "select * from public.albums a, photos, tags where photos.album_id = a.id and tags.photo_id = photos.id and 31341 = a.user_id"},
		{queries.ByKey, "", "select * from users u left join albums a on a.user_id = u.id left join photos p on p.album_id = a.id where u.id = $1"},
		{queries.ByKey, "", "select * from posts join likes using (number) where user_id = $1 and owner_id = user_id"},
		{queries.ByKey, "", "select * from users u where u.id = $1 and exists (select from posts p where p.user_id = u.id)"},
		{queries.ByKey, "", "select * from users u where u.id = $1 and not exists (select from posts p where p.user_id = u.id)"},
		{queries.ByKey, "", "select (select count(*) from posts p where p.user_id = u.id) from users u where id = $1"},
		{queries.ByKey, "", "select * from photos where album_id in (select id from albums where user_id = $1)"},
		{queries.ByKey, "", "with mine as (select id from albums where user_id = $1) select * from photos p join mine on mine.id = p.album_id"},
		{queries.ByKey, "", "select title from my_photos where owner = $1"},
		{queries.ByKey, "", "select title from all_photos x where x.owner = $1"},
		{queries.ByKey, "", "select * from (select user_id as u, title from albums) q where q.u = $1"},
		{queries.ByKey, "", "select * from users u join countries c on c.code = u.country where u.id = $1"},
		{queries.ByKey, "", "select * from albums where user_id = $1::bigint union all select * from albums where user_id = $1"},
		{queries.ByKey, "", "select * from albums where (user_id, title) = ($1, $2)"},
		{queries.ByKey, "", "select * from albums where user_id in ($1)"},
		{queries.ByKey, "", "insert into albums (user_id, title) values ($1, $2) returning id"},
		{queries.ByKey, "", "insert into albums values (default, $1, $2)"},
		{queries.ByKey, "", "insert into albums (user_id, title) values ($1, $2), ($1, $3)"},
		{queries.ByKey, "", "insert into albums (user_id, title) select $1, 'new'"},
		{queries.ByKey, "", "insert into posts (user_id, number) values ($1, $2) on conflict (user_id, number) do update set text = excluded.text"},
		{queries.ByKey, "", "update albums set title = $1 where user_id = $2 and id = $3"},
		{queries.ByKey, "", "update photos p set title = $1 from albums a where a.id = p.album_id and a.user_id = $2"},
		{queries.ByKey, "", "delete from posts where user_id = $1"},
		{queries.ByKey, "", "delete from photos using albums a where a.id = album_id and a.user_id = $1"},
		{queries.ByKey, "", "explain select * from albums where user_id = $1"},
		{queries.ByKey, "", "select * from albums where user_id::text = $1"},
		{queries.ByKey, "", "select * from albums where user_id::int8 = $1"},
		{queries.ByKey, "", "select twice(id) from users where id = 0"},

		{queries.ByChain, "by (id) of public.albums", "select * from photos where album_id = $1"},
		{queries.ByChain, "by (id) of public.photos", "select * from photos where id = $1"},
		{queries.ByChain, "by (email) of public.users", "select id from users where email = $1"},
		{queries.ByChain, "", "select * from tags join photos on photos.id = tags.photo_id where tags.photo_id = $1"},
		{queries.ByChain, "", "insert into photos (album_id, title) values ($1, $2)"},
		{queries.ByChain, "", "update photos set title = $1 where id = $2"},
		{queries.ByChain, "", "select * from albums where id = (select album_id from photos where id = $1)"},

		{queries.FanOut, "all shards", "select * from albums"},
		{queries.FanOut, "the caller merges ORDER BY, LIMIT", "select * from albums order by id limit 10"},
		{queries.FanOut, "the caller merges GROUP BY, COUNT", "select title, count(*) from albums group by title"},
		{queries.FanOut, "all shards", "select * from albums where user_id = 1; select * from albums"},
		{queries.FanOut, "writes there", "update albums set title = 'x' where title = $1"},
		{queries.FanOut, "several keys", "select * from users where id = any($1)"},
		{queries.FanOut, "several keys", "select * from users where id in ($1, $2)"},
		{queries.FanOut, "several keys", "insert into albums (user_id) values ($1), ($2)"},
		{queries.FanOut, "", "select * from albums where user_id = $1 or title = $2"},
		{queries.FanOut, "", "select * from albums where not user_id = $1"},
		{queries.FanOut, "all shards", "select * from users where email::varchar(3) = $1"},
		{queries.FanOut, "all shards", "select * from users where email::int = $1"},
		{queries.FanOut, "", "select * from albums where user_id > $1"},
		{queries.FanOut, "", "select * from users u where not exists (select from posts p where p.user_id = u.id and p.user_id = $1)"},
		{queries.FanOut, "", "select * from users u left join posts p on p.user_id = u.id and p.user_id = $1"},
		{queries.FanOut, "", "select * from users u left join (select * from posts where user_id = $1) p on p.user_id = u.id"},
		{queries.FanOut, "", "select (select count(*) from posts p where p.user_id = u.id and p.user_id = $1) from users u"},

		{queries.CrossShard, "", "with q as (select * from posts where user_id = $1) select * from users u left join q on q.user_id = u.id"}, // it is a fan-out
		{queries.CrossShard, "public.posts and public.follows", "select * from posts where user_id in (select followee from follows where follower = $1)"},
		{queries.CrossShard, "", "select * from follows f join users u on u.id = f.followee where f.follower = $1"},
		{queries.CrossShard, "", "select * from users a, users b where a.id = $1 and b.id = $2"},
		{queries.CrossShard, "", "select * from posts p join albums a on a.title = p.text"},
		{queries.CrossShard, "", "select * from likes l join users u on u.id = l.liker where l.owner_id = $1"},
		{queries.CrossShard, "", "insert into follows (follower, followee) select id, $1 from users where email = $2 and exists (select from users where id = $1)"},

		{queries.Change, "gives no user_id", "insert into albums (title) values ($1)"},
		{queries.Change, "make the key first", "insert into users (email) values ($1) returning id"},
		{queries.Change, "gives no album_id", "insert into photos (title) values ($1)"},
		{queries.Change, "it sets user_id", "update albums set user_id = $1 where id = $2"},
		{queries.Change, "it sets album_id", "update photos set album_id = $1 where id = $2"},
		{queries.Change, "it sets user_id", "insert into albums (id, user_id) values ($1, $2) on conflict (id) do update set user_id = excluded.user_id"},
		{queries.Change, "public.jobs, which is left behind", "select * from jobs j join users u on u.email = j.payload where u.id = $1"},
		{queries.Change, "has not decided about public.odd", "select * from odd"},
		{queries.Change, "DDL", "alter table albums add column x int"},
		{queries.Change, "DDL", "create index on albums (title)"},
		{queries.Change, "DDL", "drop table albums"},
		{queries.Change, "COPY", "copy albums from stdin"},
		{queries.Change, "whole tables", "truncate albums"},
		{queries.Change, "whole tables", "lock table public.albums"},
		{queries.Change, "makes a table", "create table x as select * from albums where user_id = 1"},
		{queries.Change, "MERGE", "merge into albums a using posts p on p.user_id = a.user_id when matched then delete"},

		{queries.Unread, "forget, which names public.posts", "select forget($1)"},
		{queries.Unread, "what its code does", "do 'begin end'"},
		{queries.Unread, "syntax error", "selekt 1"},

		{queries.Elsewhere, "left behind", "select * from jobs where id = $1"},
		{queries.Elsewhere, "no sharded table", "select * from countries"},
		{queries.Elsewhere, "reference table", "update countries set name = $1"},
		{queries.Elsewhere, "", "begin"},
		{queries.Elsewhere, "", "set search_path = public"},
		{queries.Elsewhere, "", "select 1"},
		{queries.Elsewhere, "", "select * from pg_catalog.pg_class"},
		{queries.Elsewhere, "", "create table other (id int)"},
		{queries.ByKey, "", "select * from albums where user_id = $1 and now() - interval $2 < now()"},
	} {
		statements := []queries.Statement{{SQL: test.sql}}
		if err := schema.Classify(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
		if got := statements[0]; got.Class != test.class || !strings.Contains(got.Why, test.why) {
			t.Errorf("%s\n\tgot %s: %s, expected %s: %s", test.sql, got.Class, got.Why, test.class, test.why)
		}
	}
}

func TestChangesKey(t *testing.T) {
	t.Parallel()
	statements := []queries.Statement{
		{SQL: "update albums set user_id = $1 where id = $2", Calls: 5, Seconds: 10},
		{SQL: "update albums set title = $1 where id = $2", Calls: 7, Seconds: 90},
		{SQL: "select * from albums where user_id = $1", Calls: 1000, Seconds: 20},
		{SQL: "select * from albums where user_id = $1 limit 1", Calls: 1000, Seconds: 30},
		{SQL: "alter role app password 's3cr3t'", Calls: 1},
	}
	if err := newSchema(t).Classify(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	if !statements[0].ChangesKey || statements[1].ChangesKey {
		t.Errorf("got %+v", statements)
	}
	queries.Sort(statements)
	var order []string
	for _, s := range statements {
		order = append(order, string(s.Class))
		if strings.Contains(s.SQL, "s3cr3t") {
			t.Errorf("a password is in %s", s.SQL)
		}
	}
	if got := strings.Join(order, " "); got != "change chain key key elsewhere" || statements[2].Seconds != 30 {
		t.Errorf("got the order %s: %+v", got, statements)
	}
	if all := queries.Summarize(statements); all[0].Class != queries.Change || all[0].Calls != 5 || all[5].Statements != 2 || all[5].Seconds != 50 {
		t.Errorf("got %+v", all)
	}
	page := queries.Page(statements, []string{"fact"}, 1)
	var out strings.Builder
	if err := page.WriteHTML(&out); err != nil || !strings.Contains(out.String(), "The first 1 of 2, by time.") || !strings.Contains(out.String(), "60.0 %") {
		t.Errorf("%v: %s", err, out.String())
	}
}
