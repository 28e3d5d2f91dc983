package adopt_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/adopt"
)

const objects = `
	create extension hstore;
	create type mood as enum ('good', 'bad');
	create domain title as text;
	create sequence loose;
	create sequence shared;
	create table big (id bigint primary key, user_id bigint not null references users, mood mood, moods mood[], title title, n bigint default nextval('shared'), code text);
	create table bigger (user_id bigint not null references users, n bigint default nextval('shared'));
	create unlogged table cache (user_id bigint not null primary key references users);
	create table audit (id uuid primary key, user_id bigint references users);
	create table rooms (id uuid primary key, user_id bigint not null references users, during tsrange, exclude using gist (during with &&));
	create table parent (user_id bigint not null references users);
	create table child () inherits (parent);
	create unique index big_code on big (lower(code)) where code <> '';
	create unique index big_user on big (user_id, code);
	create function touch() returns trigger language plpgsql as 'begin update big set n = 1; return new; end';
	create function harmless() returns int language sql as 'select 1';
	create trigger big_touch before insert on big for each row execute function touch();
	create rule big_rule as on delete to big do also nothing;
	create view good as select * from big where mood = 'good';
	create materialized view titles as select title from big;
	alter table bigger enable row level security;
	create policy mine on bigger using (true);
	create table invitations (id int primary key);
	alter table users add column invitation int references invitations;
	insert into big (id, user_id) values (9007199254740993, 1), (5, 2);
	create publication feed for table big;
	select lo_create(0);
`

func TestFindings(t *testing.T) {
	t.Parallel()
	plan := look(t, database(t, service+objects), head+`tables:
  - {table: public.audit, is: left}
  - {table: public.invitations, is: left}
  - {table: public.follows, is: keyed, by: follower, crosses: [follows_followee_fkey]}
`)
	for kind, want := range map[string]string{
		"foreign-key-crosses": "public.comments comments_photo_id_fkey: 500 of 500 rows lead to another key in public.photos by photo_id → public.photos.album_id → public.albums.user_id; " +
			"public.follows follows_followee_fkey: 50 of 50 rows lead to another key in public.users by followee",
		"foreign-key-out": "public.audit audit_user_id_fkey: a table that is left refers to public.users; " +
			"public.users users_invitation_fkey: refers to public.invitations, which is left behind",
		"unique-without-key": "public.big big_pkey: primary key (id); public.big big_code: (an expression), of some rows; public.users users_email_key: (email)",
		"exclusion":          "public.rooms rooms_during_excl: EXCLUDE",
		"no-primary-key":     "public.bigger : 0 rows; public.parent : 0 rows",
		"int4-id":            "public.albums id: integer: the largest is 200",
		"beyond-2-53":        "public.big id: the largest is 9007199254740993",
		"sequence":           "public.loose: no column draws from it by default; public.shared: drawn from by public.big.n, public.bigger.n",
		"trigger":            "public.big big_touch: public.touch()",
		"rule":               "public.big big_rule: rewrites statements",
		"row-security":       "public.bigger : 1 policies",
		"view":               "public.big public.good: view; public.big public.titles: materialized view",
		"function":           "public.touch(): plpgsql, names public.big",
		"publication":        "public.big feed: published",
		"type":               "public.big mood: public.mood, an enum; public.big moods: public.mood, an enum; public.big title: public.title, a domain",
		"inherits":           "public.child : from public.parent",
		"unlogged":           "public.cache : unlogged",
		"extension":          "hstore: 1.8 in schema public",
		"large-objects":      ": 1 of them",
	} {
		if got := findings(plan, kind); got != want && kind != "extension" || !strings.Contains(got, want[:6]) {
			t.Errorf("%s: got\n%s\nexpected\n%s", kind, got, want)
		}
	}
	known := map[string]bool{}
	for _, rule := range adopt.Rules {
		known[rule.Kind] = true
	}
	for _, f := range plan.Findings {
		if !known[f.Kind] {
			t.Errorf("no rule for the kind %s", f.Kind)
		}
	}
}

// TestSpread holds that the sizes of shards add up, and show a key that has most rows.
func TestSpread(t *testing.T) {
	t.Parallel()
	plan := look(t, database(t, service+`
		insert into users (id, email) values (7 + 256, 'other');
		insert into albums (user_id) select case when n <= 5000 then 7 else 7 + 256 end from generate_series(1, 6000) n;
		analyze albums`), decided)
	if len(plan.Spreads) != 6 || plan.Spreads[0].ShardCount != 256 || plan.Spreads[5].ShardCount != 8192 {
		t.Fatalf("got %+v", plan.Spreads)
	}
	for _, s := range plan.Spreads {
		keys := 51
		if s.ShardCount == 256 { // two keys meet in shard 7
			keys = 50
		}
		if s.Empty != s.ShardCount-keys || s.Smallest != 0 || s.Rows < 5000 || s.Largest < s.Median {
			t.Errorf("got %+v", s)
		}
	}
	if one, two := plan.Spreads[0], plan.Spreads[1]; one.Rows != two.Rows+1001 || one.Largest <= two.Largest {
		t.Errorf("two keys in one shard: %+v, apart: %+v", one, two)
	}
	if plan.Disk == 0 || plan.Disk > plan.Bytes {
		t.Errorf("%d bytes, %d needed", plan.Bytes, plan.Disk)
	}
}
