package queries_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/queries"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

const service = `
	create table countries (code text primary key, name text);
	create table users (id bigserial primary key, email text not null unique, country text references countries);
	create table albums (id bigserial primary key, user_id bigint not null references users, title text);
	create table photos (id bigserial primary key, album_id bigint not null references albums, title text, size bigint);
	create table tags (photo_id bigint not null references photos, tag text, primary key (photo_id, tag));
	create table follows (follower bigint not null references users, followee bigint not null references users, primary key (follower, followee));
	create table posts (user_id bigint not null references users, number bigint, text text, primary key (user_id, number));
	create table likes (owner_id bigint not null, number bigint not null, liker bigint not null references users, foreign key (owner_id, number) references posts, primary key (owner_id, number, liker));
	create table jobs (id bigserial primary key, payload text);
	create table odd (id bigserial primary key);
	create view my_photos as select p.id, p.title, a.user_id as owner from photos p join albums a on a.id = p.album_id;
	create view all_photos as select * from my_photos;
	create function forget(who bigint) returns void language sql as 'delete from posts where user_id = who';
	create function twice(n bigint) returns bigint language sql as 'select 2 * n';
`

const decided = `key: public.users.id
strategy: {by: modulo}
tables:
  - {table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}
  - {table: public.likes, is: keyed, by: owner_id, crosses: [likes_liker_fkey]}
  - {table: public.albums, is: keyed, by: user_id}
  - {table: public.jobs, is: left}
`

// exec runs statements in a database.
func exec(t *testing.T, dsn, statements string) {
	t.Helper()
	if _, err := pgtest.Connect(t, dsn).PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// read returns the schema of a database by the decisions, and calls more in the transaction; it may be nil.
func read(t *testing.T, host shards.Host, more func(context.Context, pgx.Tx) error) *queries.Schema {
	t.Helper()
	file, err := adopt.ParseFile("adopt.yaml", []byte(decided))
	if err != nil {
		t.Fatal(err)
	}
	var schema *queries.Schema
	_, err = adopt.Read(t.Context(), adopt.Config{Host: host, File: file}, func(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) error {
		if schema, err = queries.Read(ctx, tx, plan); err != nil || more == nil {
			return err
		}
		return more(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func newSchema(t *testing.T) *queries.Schema {
	t.Helper()
	host := shardtest.Hosts(t, 1)[0]
	exec(t, host.ConnString(), service)
	return read(t, host, nil)
}
