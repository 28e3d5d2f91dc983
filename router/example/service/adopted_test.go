package service_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// adoptFile is what the service decides: a user's name is the key.
const adoptFile = `
key: public.users.name
strategy: {by: hash, hash: hex}
tables:
  - {table: public.users, is: keyed, by: name, ids: next_id}
  - {table: public.photos, is: chained, through: photos_user_id_fkey, ids: next_id}
  - {table: public.follows, is: chained, through: follows_user_id_fkey}
  - {table: public.likes, is: chained, through: likes_photo_id_fkey}
`

// TestAdopted runs the service, unchanged, on the database of its former self, which had one schema and numbered its rows itself.
func TestAdopted(t *testing.T) {
	t.Parallel()
	host := shardtest.Hosts(t, 1)[0]
	conn := pgtest.Connect(t, host.ConnString())
	exec := func(statements string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	up := func(name string) string {
		t.Helper()
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(string(text), "---- create above")
		return before
	}
	for _, name := range []string{"001_users.sql", "002_photos.sql", "003_follows.sql", "004_likes.sql"} {
		exec(strings.ReplaceAll(up(name), "bigint primary key default next_id()", "bigserial primary key"))
	}
	exec(`insert into users (name, request_key) select 'old ' || n, 'k' || n from generate_series(1, 40) n;
		insert into photos (user_id, title, request_key) select 1 + n % 40, 'old', n from generate_series(1, 200) n`)

	config := shardtest.MapConfig(8, []shards.Host{host})
	config.Strategy, config.OldIDsBelow = shards.Strategy{By: shards.Hash, Hash: shards.Hex}, 1<<40
	config.Types = []shards.ObjectType{{Name: "board", Number: 1}}
	m, err := config.Map()
	if err == nil {
		_, err = provision.Create(t.Context(), provision.CreateConfig{Map: m})
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := adopt.ParseFile("adopt.yaml", []byte(adoptFile))
	if err == nil {
		_, err = views.Make(t.Context(), views.Config{Map: m, File: file, Text: adoptFile})
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range m.All().All() { // what the service has had since
		exec("set search_path = " + m.Schema(n) + ";" + up("005_boards.sql") + up("006_notes.sql"))
	}
	exec("set search_path = public")

	a := serve(t, m)
	var users []shards.ID
	for i := range 6 {
		name := fmt.Sprintf("new %d", i)
		users = append(users, a.do(http.StatusCreated, "POST", "/users", newKey(), fmt.Sprintf(`{"name": %q}`, name)).ID)
		shard, err := a.router.ForID(users[i])
		if of, keyErr := m.ForText(name); err != nil || keyErr != nil || shard.Number() != of {
			t.Errorf("user %d is in shard %d by the ID, and %d by the name: %v, %v", users[i], shard.Number(), of, err, keyErr)
		}
	}
	photo := a.do(http.StatusCreated, "POST", fmt.Sprintf("/users/%d/photos", users[0]), "p1", `{"title": "sea"}`)
	if again := a.do(http.StatusCreated, "POST", fmt.Sprintf("/users/%d/photos", users[0]), "p1", `{"title": "sea"}`); again.ID != photo.ID {
		t.Errorf("the same request made photo %d, then %d", photo.ID, again.ID)
	}
	a.do(http.StatusOK, "POST", fmt.Sprintf("/photos/%d/likes/%d", photo.ID, users[1]), newKey(), "")
	if got := a.do(http.StatusOK, "GET", fmt.Sprint("/photos/", photo.ID), "", ""); got.Likes != 1 || got.Title != "sea" {
		t.Errorf("the photo is %+v", got)
	}
	a.do(http.StatusNotFound, "GET", "/users/7", "", "") // an old ID names no shard
	a.do(http.StatusConflict, "POST", "/users", newKey(), `{"name": "old 7"}`)

	rows, err := conn.Query(t.Context(), "select p.title from photos p join users u on u.id = p.user_id where u.name in ('new 0', 'old 7') group by 1 order by 1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(got, []string{"old", "sea"}) {
		t.Errorf("old code reads %q, %v", got, err)
	}
}
