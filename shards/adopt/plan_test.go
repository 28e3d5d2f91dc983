package adopt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	plan := look(t, database(t, service), "")
	for name, want := range map[string]struct {
		is            adopt.Class
		by, through   string
		null, crossed int64
	}{
		"users":             {is: adopt.Keyed, by: "id"},
		"albums":            {is: adopt.Keyed, by: "user_id"},
		"photos":            {is: adopt.Chained, through: "photos_album_id_fkey"},
		"countries":         {is: adopt.Reference},
		"schema_migrations": {is: adopt.Left},
		"jobs":              {is: adopt.Undecided},
		"clicks":            {is: adopt.Undecided},
		"follows":           {is: adopt.Undecided, crossed: 50},
		"comments":          {is: adopt.Undecided, crossed: 500},
	} {
		got := table(t, plan, name)
		if got.Is != want.is || got.By != want.by || got.Through != want.through || got.Null != want.null {
			t.Errorf("%s: got %s by %q through %q, %d null, expected %+v: %s", name, got.Is, got.By, got.Through, got.Null, want, got.Why)
		}
		var crossed int64
		for _, c := range got.Crossings {
			crossed += c.Rows
		}
		if crossed != want.crossed {
			t.Errorf("%s: %d rows lead to another key, expected %d", name, crossed, want.crossed)
		}
	}
	for name, want := range map[string][]string{
		"follows": {
			"{table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}", "{table: public.follows, is: keyed, by: followee}",
			"{table: public.follows, is: reference}", "{table: public.follows, is: left}",
		},
		"clicks": {"{table: public.clicks, is: keyed, by: user_id}", "{table: public.clicks, is: reference}", "{table: public.clicks, is: left}"},
		"jobs":   {"{table: public.jobs, is: reference}", "{table: public.jobs, is: left}"},
		"comments": {
			"{table: public.comments, is: keyed, by: author_id, crosses: [comments_photo_id_fkey]}", "{table: public.comments, is: chained, through: comments_photo_id_fkey}",
			"{table: public.comments, is: reference}", "{table: public.comments, is: left}",
		},
	} {
		if got := table(t, plan, name).Options; !slices.Equal(got, want) {
			t.Errorf("%s: got the options %q, expected %q", name, got, want)
		}
	}
	if len(plan.Undecided()) != 4 {
		t.Errorf("undecided: %v", plan.Undecided())
	}
}

// decided is what a person makes of the plan of service.
const decided = head + `tables:
  - {table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}
  - {table: public.comments, is: chained, through: comments_photo_id_fkey, crosses: [comments_author_id_fkey], ids: next_id}
  - {table: public.clicks, is: keyed, by: user_id, keyless: left}
  - {table: public.jobs, is: left}
  - {table: public.gone, is: left}
  - {table: public.albums, is: undecided}
`

func TestDecisions(t *testing.T) {
	t.Parallel()
	host := database(t, service)
	plan := look(t, host, decided)
	if got := plan.Undecided(); len(got) > 0 {
		t.Errorf("undecided: %v: %s", got, plan.Table(got[0]).Why)
	}
	if got := table(t, plan, "clicks"); got.Null != 10 || got.Is != adopt.Keyed {
		t.Errorf("clicks: %+v", got)
	}
	if got := table(t, plan, "comments"); got.Is != adopt.Chained || got.Route != "photo_id → public.photos.album_id → public.albums.user_id" {
		t.Errorf("comments: %+v", got)
	}
	if len(plan.Missing) != 1 || plan.Missing[0].Table != "gone" || len(plan.New) != 4 {
		t.Errorf("missing %v, new %v", plan.Missing, plan.New)
	}
	// What is counted and not accepted leaves a decision undecided.
	plan = look(t, host, strings.NewReplacer(", crosses: [follows_followee_fkey]", "", ", keyless: left", "").Replace(decided))
	for name, want := range map[string]string{
		"follows": "by follows_followee_fkey (followee → public.users) 50 rows of 50 refer to rows of another key",
		"clicks":  "10 rows of 100 have no key by user_id (10 null, 0 broken)",
	} {
		if got := table(t, plan, name); got.Is != adopt.Undecided || got.Why != want {
			t.Errorf("%s is %s: %s", name, got.Is, got.Why)
		}
	}
}

// TestRowsDecide holds that several ways are one if all rows say so, that rows without a key and broken chains are counted, and that a
// table without rows stays undecided.
func TestRowsDecide(t *testing.T) {
	t.Parallel()
	host := database(t, service+`
		create table shares (sender bigint references users, owner bigint not null references users);
		create table empty (a bigint not null references users, b bigint not null references users);
		create table old (photo_id bigint);
		insert into shares select n, n from generate_series(1, 20) n;
		insert into old select nullif(n, 1) from generate_series(1, 1010) n;
		alter table old add foreign key (photo_id) references photos not valid;
	`)
	plan := look(t, host, "")
	if got := table(t, plan, "shares"); got.Is != adopt.Keyed || got.By != "owner" {
		t.Errorf("shares is %s by %q: %s", got.Is, got.By, got.Why)
	}
	if got := table(t, plan, "empty"); got.Is != adopt.Undecided || got.Why != "several columns have a key, and there are no rows to tell: a, b" {
		t.Errorf("empty is %s: %s", got.Is, got.Why)
	}
	if got := table(t, plan, "old"); got.Is != adopt.Undecided || got.Null != 1 || got.Broken != 10 || got.Looked != 1010 {
		t.Errorf("old is %s, %d null and %d broken of %d: %s", got.Is, got.Null, got.Broken, got.Looked, got.Why)
	}
	cfg := config(t, host, "")
	cfg.Sample = 99.99 // the one page that the table has
	plan, err := adopt.Look(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := table(t, plan, "shares"); got.Is != adopt.Undecided {
		t.Errorf("by a sample, shares is %s: %s", got.Is, got.Why)
	}
}

// TestLinks holds that a foreign key that the database does not have leads to the key as one that it has.
func TestLinks(t *testing.T) {
	t.Parallel()
	plan := look(t, database(t, service), head+`links:
  - {from: public.clicks, columns: [photo_id], to: public.photos, references: [id]}
tables:
  - {table: public.clicks, is: chained, through: "photo_id->public.photos"}
`)
	if got := table(t, plan, "clicks"); got.Is != adopt.Chained || got.Broken != 0 || got.Looked != 100 {
		t.Errorf("clicks is %s, %d broken: %s", got.Is, got.Broken, got.Why)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	host := database(t, service+`create table odd (id numeric primary key, twice int); create table texts (id text primary key);
		create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false); create table names (id text collate loose primary key)`)
	for _, test := range []struct{ key, file, want string }{
		{"nothing.id", "", "key: there is no table nothing"},
		{"Users.id", "", ""},
		{`"Users".id`, "", `there is no table "Users"; there is public.users`},
		{"users.nothing", "", "table public.users has no column nothing"},
		{"users", "", "expected a column of a table, such as users.id"},
		{"odd.id", "", "of type numeric"},
		{"texts.id", "", ""},
		{"names.id", "", "key: public.names.id, whose collation is not deterministic; expected a column in which equal texts are the same"},
		{"albums.user_id", "", "which is not unique"},
		{"", "key: public.gone.id\nstrategy: {by: modulo}\n", "adopt.yaml:1: key: public.gone.id"},
		{"", "key: public.texts.id\nstrategy: {by: modulo}\n", "adopt.yaml:2: strategy: modulo for public.texts.id, of type text"},
		{"albums.id", head, "adopt.yaml:1: key: public.users.id; expected the key of the command"},
		{"", head + "tables:\n  - {table: public.albums, is: keyed, by: nothing}\n", "table public.albums has no column nothing"},
		{"", head + "tables:\n  - {table: public.photos, is: keyed}\n", "adopt.yaml:4: tables[0]: keyed, without by"},
		{"", head + "tables:\n  - {table: public.jobs, is: chained}\n", "adopt.yaml:4: tables[0]: chained, without a foreign key"},
		{"", head + "tables:\n  - {table: public.users, is: keyed, by: id, ids: next_id}\n", "adopt.yaml:4: tables[0].ids: next_id for id, the key, which decides the shard; expected sequence"},
		{"", head + "tables:\n  - {table: public.albums, is: keyed, by: user_id, ids: next_id}\n", "adopt.yaml:4: tables[0].ids: next_id for id, of type integer; expected sequence"},
		{"", head + "tables:\n  - {table: public.follows, is: keyed, by: follower, ids: sequence}\n", "adopt.yaml:4: tables[0].ids: sequence of a table whose primary key draws from no sequence"},
		{"", head + "tables:\n  - {table: public.users, is: left}\n", "adopt.yaml:4: tables[0].is: left; expected keyed"},
		{"", head + "tables:\n  - {table: public.albums, is: keyed, crosses: [photos_album_id_fkey]}\n", "adopt.yaml:4: tables[0].crosses[0]: photos_album_id_fkey"},
		{"", head + "links:\n  - {from: public.clicks, columns: [photo_id], to: public.photos, references: [album_id]}\n", "adopt.yaml:4: links[0]: table public.photos has no unique key"},
	} {
		cfg := adopt.Config{Host: host, Key: test.key}
		if test.file != "" {
			cfg = config(t, host, test.file)
			cfg.Key = test.key
		}
		_, err := adopt.Look(t.Context(), cfg, nil)
		var field *shards.FieldError
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &field) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %s: got %v, expected %s", test.key, test.file, err, test.want)
		}
	}
}
