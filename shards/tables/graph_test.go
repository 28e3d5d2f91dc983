package tables_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// photos is a service with most of the ways in which tables reach a key.
const photos = `
	create table countries (code text primary key);
	create table users (id bigint primary key, email text not null unique, country text references countries, manager_id bigint references users, avatar_id bigint);
	create table albums (id bigint primary key, user_id bigint not null references users);
	create table photos (id bigint primary key, album_id bigint not null references albums, unique (album_id, id));
	alter table users add foreign key (avatar_id) references photos;
	create table tags (photo_id bigint not null references photos, tag text, primary key (photo_id, tag));
	create table follows (follower bigint not null references users, followee bigint not null references users, primary key (follower, followee));
	create table follow_notes (follower bigint not null, followee bigint not null, note text, foreign key (follower, followee) references follows);
	create table comments (id bigint primary key, photo_id bigint references photos, author_id bigint references users, parent_id bigint references comments);
	create table logins (email text not null references users (email), at timestamptz);
	create table clicks (user_id bigint, photo_id bigint);
	create table settings (name text primary key);
	create table visits (id bigint not null, user_id bigint not null references users, at date not null, primary key (id, at)) partition by range (at);
	create table visits_2026 partition of visits for values from ('2026-01-01') to ('2027-01-01');
	create table visit_pages (visit_id bigint, at date, foreign key (visit_id, at) references visits);
	create table base (user_id bigint references users);
	create table derived () inherits (base);
	create schema "Old Data";
	create table "Old Data"."Ta""ble" ("User Id" bigint not null references users);
	create view some_photos as select * from photos;
`

func TestRoutes(t *testing.T) {
	t.Parallel()
	c := read(t, connected(t, photos))
	g := graph(t, c, tables.Options{})
	routes(t, g, map[string]string{
		"public.users":             "id",
		"public.albums":            "user_id",
		"public.photos":            "album_id → public.albums.user_id",
		"public.tags":              "photo_id → public.photos.album_id → public.albums.user_id",
		"public.follows":           "follower",
		"public.follow_notes":      "follower",
		"public.comments":          "author_id",
		"public.logins":            "email → public.users.id",
		"public.visits":            "user_id",
		"public.visit_pages":       "visit_id, at → public.visits.user_id",
		"public.base":              "user_id",
		"public.countries":         "",
		"public.clicks":            "",
		"public.settings":          "",
		"public.derived":           "", // foreign keys are not inherited
		`"Old Data"."Ta""ble"`:     `"User Id"`,
		"public.there_is_no_table": "",
	})
	if c.Table(name("visits_2026")) != nil || c.Table(name("some_photos")) != nil {
		t.Error("a partition or a view is a table")
	}
	if visits := c.Table(name("visits")); visits.Kind != tables.Partitioned || visits.Partitions != 1 {
		t.Errorf("got %+v", visits)
	}
	if base := c.Table(name("base")); base.From() != `only "public"."base"` {
		t.Errorf("rows of base are read from %s", base.From())
	}
	if got := g.Columns(name("follows")); !slices.Equal(got, []string{"follower", "followee"}) {
		t.Errorf("follows has the keys %q", got)
	}
	for table, want := range map[string]string{
		"users":        "users_avatar_id_fkey: avatar_id → public.photos.album_id → public.albums.user_id, users_manager_id_fkey: manager_id",
		"albums":       "",
		"photos":       "",
		"follows":      "follows_followee_fkey: followee",
		"follow_notes": "", // both columns lead to one row of follows
		"comments":     "comments_parent_id_fkey: parent_id → public.comments.author_id, comments_photo_id_fkey: photo_id → public.photos.album_id → public.albums.user_id",
	} {
		if got := strings.Join(crossings(g, table), ", "); got != want {
			t.Errorf("%s: got the crossings\n%s\nexpected\n%s", table, got, want)
		}
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	c := read(t, connected(t, photos))
	g := graph(t, c, tables.Options{
		Links: []tables.ForeignKey{{Name: "clicks", From: name("clicks"), To: name("photos"), Columns: []string{"photo_id"}, References: []string{"id"}}},
		Choices: map[tables.Name]tables.Choice{
			name("follows"):  {Column: "followee"},
			name("comments"): {Through: "comments_photo_id_fkey"},
			name("settings"): {Column: "name"}, // a column of any type
		},
		Without: []tables.Name{name("visits")},
	})
	routes(t, g, map[string]string{
		"public.follows":      "followee",
		"public.follow_notes": "followee",
		"public.comments":     "photo_id → public.photos.album_id → public.albums.user_id",
		"public.clicks":       "photo_id → public.photos.album_id → public.albums.user_id",
		"public.settings":     "name",
		"public.visits":       "",
		"public.visit_pages":  "",
	})
	if got := strings.Join(crossings(g, "comments"), ", "); got != "comments_author_id_fkey: author_id, comments_parent_id_fkey: parent_id → public.comments.photo_id → public.photos.album_id → public.albums.user_id" {
		t.Errorf("got the crossings %s", got)
	}
	// A column that is chosen needs no foreign key, and gives the key to tables that refer to it.
	g = graph(t, c, tables.Options{Choices: map[tables.Name]tables.Choice{name("clicks"): {Column: "user_id"}}})
	routes(t, g, map[string]string{"public.clicks": "user_id"})
	// The better of two chains is the one that cannot be null, also if it is longer.
	c = read(t, connected(t, photos+`create table marks (album_id bigint references albums, tag_photo bigint not null, tag text not null, foreign key (tag_photo, tag) references tags)`))
	routes(t, graph(t, c, tables.Options{}), map[string]string{"public.marks": "tag_photo, tag → public.tags.photo_id → public.photos.album_id → public.albums.user_id"})
}

func TestGraphRefuses(t *testing.T) {
	t.Parallel()
	c := read(t, connected(t, photos))
	link := tables.ForeignKey{Name: "clicks", From: name("clicks"), To: name("photos"), Columns: []string{"photo_id"}, References: []string{"id"}}
	with := func(change func(*tables.ForeignKey)) tables.Options {
		l := link
		change(&l)
		return tables.Options{Links: []tables.ForeignKey{l}}
	}
	choose := func(table string, choice tables.Choice) tables.Options {
		return tables.Options{Choices: map[tables.Name]tables.Choice{name(table): choice}}
	}
	for want, o := range map[string]tables.Options{
		"there is no table public.nowhere":                             with(func(f *tables.ForeignKey) { f.To = name("nowhere") }),
		"table public.clicks has no column nothing":                    with(func(f *tables.ForeignKey) { f.Columns = []string{"nothing"} }),
		"has 1 columns and refers to 2":                                with(func(f *tables.ForeignKey) { f.References = []string{"id", "album_id"} }),
		"table public.photos has no unique key of album_id":            with(func(f *tables.ForeignKey) { f.References = []string{"album_id"} }),
		"table public.albums has no column nothing":                    choose("albums", tables.Choice{Column: "nothing"}),
		"table public.albums has no foreign key nothing":               choose("albums", tables.Choice{Through: "nothing"}),
		"table public.users has the key: its column is id":             choose("users", tables.Choice{Column: "email"}),
		"users_country_fkey":                                           choose("users", tables.Choice{Through: "users_country_fkey"}),
		"there is no table public.nothing":                             choose("nothing", tables.Choice{Column: "id"}),
		"table public.users has the key":                               {Without: []tables.Name{name("users")}},
		"comments: comments_parent_id_fkey does not lead to public.us": choose("comments", tables.Choice{Through: "comments_parent_id_fkey"}),
	} {
		_, err := tables.NewGraph(c, tables.ColumnName{Table: name("users"), Column: "id"}, o)
		if err == nil || want != "users_country_fkey" && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %s", err, want)
		}
	}
	if _, err := tables.NewGraph(c, tables.ColumnName{Table: name("users"), Column: "nothing"}, tables.Options{}); err == nil {
		t.Error("a key that is not there was accepted")
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	c := read(t, connected(t, photos+`
		create table ping (id bigint primary key, pong bigint);
		create table pong (id bigint primary key, ping bigint not null references ping deferrable);
		alter table ping add foreign key (pong) references pong;`))
	g := graph(t, c, tables.Options{})
	order, broken := g.Order()
	left := map[string]bool{}
	for _, f := range broken {
		left[f.Name] = true
	}
	for _, f := range g.Links() {
		if before := slices.Index(order, f.To) < slices.Index(order, f.From); !before && !left[f.Name] {
			t.Errorf("%s comes before %s: %v", f.From, f.To, order)
		}
	}
	// The circle users → photos → albums → users is cut where the column can be null, the other where the constraint is deferrable.
	if len(left) != 4 || !left["pong_ping_fkey"] || !left["users_avatar_id_fkey"] || !left["users_manager_id_fkey"] || !left["comments_parent_id_fkey"] {
		t.Errorf("left out: %v", left)
	}
	if len(order) != len(c.Tables) {
		t.Errorf("%d tables are in the order", len(order))
	}
}
