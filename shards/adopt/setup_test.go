package adopt_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/tables"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// service is a photo service that began with one database.
const service = `
	create table countries (code text primary key, name text);
	create table users (id bigserial primary key, email text not null unique, country text references countries);
	create table albums (id serial primary key, user_id bigint not null references users);
	create table photos (id bigserial primary key, album_id int not null references albums, title text);
	create table follows (follower bigint not null references users, followee bigint not null references users, primary key (follower, followee));
	create table comments (id bigserial primary key, photo_id bigint not null references photos, author_id bigint not null references users);
	create table clicks (user_id bigint, photo_id bigint);
	create table jobs (id bigserial primary key, payload text);
	create table schema_migrations (version text primary key);
	insert into countries values ('nl', 'Netherlands');
	insert into users (email, country) select 'u' || n || '@example.org', 'nl' from generate_series(1, 50) n;
	insert into albums (user_id) select 1 + n % 50 from generate_series(1, 200) n;
	insert into photos (album_id) select 1 + n % 200 from generate_series(1, 1000) n;
	insert into follows select n, 1 + n % 50 from generate_series(1, 50) n;
	insert into comments (photo_id, author_id) select 1 + n % 1000, 1 + n % 50 from generate_series(1, 500) n;
	insert into clicks select case when n % 10 > 0 then 1 + n % 50 end, n from generate_series(1, 100) n;
	analyze;
`

// database returns an empty database in which the statements were run.
func database(t *testing.T, statements string) shards.Host {
	t.Helper()
	host := shardtest.Hosts(t, 1)[0]
	run(t, host.ConnString(), statements)
	return host
}

// run runs statements, and returns what the last one returns of one column.
func run(t *testing.T, dsn, statements string) []string {
	t.Helper()
	results, err := pgtest.Connect(t, dsn).PgConn().Exec(t.Context(), statements).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, row := range results[len(results)-1].Rows {
		found = append(found, string(row[0]))
	}
	return found
}

func look(t *testing.T, host shards.Host, file string) *adopt.Plan {
	t.Helper()
	plan, err := adopt.Look(t.Context(), config(t, host, file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// config returns the config for a plan by users.id, or by a file.
func config(t *testing.T, host shards.Host, file string) adopt.Config {
	t.Helper()
	if file == "" {
		return adopt.Config{Host: host, Key: "users.id"}
	}
	f, err := adopt.ParseFile("adopt.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return adopt.Config{Host: host, File: f}
}

// table returns the plan of a table of schema public.
func table(t *testing.T, plan *adopt.Plan, name string) *adopt.TablePlan {
	t.Helper()
	found := plan.Table(tables.Name{Schema: "public", Table: name})
	if found == nil {
		t.Fatalf("the plan has no table %s", name)
	}
	return found
}

// head is the beginning of a file of decisions.
const head = "key: public.users.id\nstrategy: {by: modulo}\n"

// findings returns the findings of a kind as table, object, text.
func findings(plan *adopt.Plan, kind string) string {
	var found []string
	for _, f := range plan.Findings {
		if f.Kind == kind {
			found = append(found, strings.TrimSpace(f.Table+" "+f.Object+": "+f.Text))
		}
	}
	return strings.Join(found, "; ")
}
