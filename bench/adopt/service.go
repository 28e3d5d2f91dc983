package adopt

import (
	"fmt"
	"strings"
)

// schema is a photo service that began with one database: countries and tags are reference tables, jobs is left, all others have a user.
const schema = `
	create table countries (code text primary key, name text not null);
	create table tags (id int primary key, name text not null unique);
	create table jobs (id bigserial primary key, work text not null);
	create table users (id bigserial primary key, name text not null, country text not null references countries, balance bigint not null default 0);
	create table profiles (user_id bigint primary key references users on delete cascade, about text not null);
	create table albums (id bigserial primary key, user_id bigint not null references users on delete cascade, title text not null);
	create table photos (id bigserial primary key, album_id bigint not null references albums on delete cascade, title text not null);
	create table photo_tags (photo_id bigint references photos on delete cascade, tag_id int references tags, primary key (photo_id, tag_id));
	create table comments (id bigserial primary key, photo_id bigint not null references photos on delete cascade, body text not null);
	create table replies (id bigserial primary key, comment_id bigint not null references comments on delete cascade, body text not null);
	create table reactions (id bigserial primary key, reply_id bigint not null references replies on delete cascade, kind text not null);
	create table reports (id bigserial primary key, reaction_id bigint not null references reactions on delete cascade, reason text not null);
	create table verdicts (id bigserial primary key, report_id bigint not null references reports on delete cascade, decision text not null);
	create table likes (user_id bigint references users on delete cascade, photo_id bigint, primary key (user_id, photo_id));
	create table follows (follower bigint references users on delete cascade, followee bigint, primary key (follower, followee))`

// afterFill are made when the tables have their rows.
const afterFill = `
	alter table likes add constraint likes_photo foreign key (photo_id) references photos on delete cascade;
	alter table follows add constraint follows_followee foreign key (followee) references users on delete cascade;
	create index on albums (user_id);
	create index on photos (album_id);
	create index on comments (photo_id);
	create index on replies (comment_id);
	create index on reactions (reply_id);
	create index on reports (reaction_id);
	create index on verdicts (report_id);
	create index on likes (photo_id);
	create index on follows (followee)`

// decisions are adopt.yaml of the service.
const decisions = `key: public.users.id
strategy: {by: modulo}
tables:
  - {table: public.jobs, is: left}
  - {table: public.likes, is: keyed, by: user_id, crosses: [likes_photo]}
  - {table: public.follows, is: keyed, by: follower, crosses: [follows_followee]}
`

// table is a table of rows that belong to users.
type table struct {
	name   string
	id     string // the column that is the key, or its first
	parent string // the column that leads to the user, or another of the key
	text   string // a column that clients write, if there is one
	above  string // the table that parent leads to, or that id leads to for a table without text; users if it is empty
	share  int    // of the rows, per cent
}

// chain are the tables from albums down to the sixth below.
var chain = []table{
	{"albums", "id", "user_id", "title", "", 4},
	{"photos", "id", "album_id", "title", "albums", 20},
	{"comments", "id", "photo_id", "body", "photos", 18},
	{"replies", "id", "comment_id", "body", "comments", 8},
	{"reactions", "id", "reply_id", "kind", "replies", 8},
	{"reports", "id", "reaction_id", "reason", "reactions", 3},
	{"verdicts", "id", "report_id", "decision", "reports", 1},
}

// pairs are tables whose rows are nothing but their key.
var pairs = []table{
	{"photo_tags", "photo_id", "tag_id", "", "photos", 16},
	{"likes", "user_id", "photo_id", "", "", 9},
	{"follows", "follower", "followee", "", "", 8},
}

const (
	userShare, jobShare = 2, 1 // per cent of the rows; profiles have the share of users
	countries, tags     = 200, 1000
)

// of returns how many rows a share is.
func of(rows, share int) int { return rows * share / 100 }

// scatter spreads the rows of a table over those of the one above.
func scatter(parents int) string { return fmt.Sprintf("1 + n * 7919 %% %d", parents) }

// fill returns the statements that make the rows.
func fill(rows int) []string {
	users := of(rows, userShare)
	statements := []string{
		fmt.Sprintf(`insert into countries select 'c' || n, 'country ' || n from generate_series(0, %d) n`, countries-1),
		fmt.Sprintf(`insert into tags select n, 'tag ' || n from generate_series(1, %d) n`, tags),
		fmt.Sprintf(`insert into jobs (work) select 'job ' || n from generate_series(1, %d) n`, of(rows, jobShare)),
		fmt.Sprintf(`insert into users (name, country) select 'user ' || n, 'c' || n %% %d from generate_series(1, %d) n`, countries, users),
		fmt.Sprintf(`insert into profiles select n, md5(n::text) from generate_series(1, %d) n`, users),
	}
	sizes := map[string]int{"": users}
	for _, t := range chain {
		sizes[t.name] = of(rows, t.share)
		statements = append(statements, fmt.Sprintf(`insert into %s (%s, %s) select %s, md5(n::text) from generate_series(1::bigint, %d) n`,
			t.name, t.parent, t.text, scatter(sizes[t.above]), sizes[t.name]))
	}
	others := map[string]int{"photo_tags": tags, "likes": sizes["photos"], "follows": users}
	for _, t := range pairs {
		// Each time n has passed all rows above, the other side is one further, so that no pair comes twice.
		above := sizes[t.above]
		statements = append(statements, fmt.Sprintf(`insert into %s select 1 + n %% %d, 1 + (n + n / %[2]d) %% %d from generate_series(0::bigint, %d) n`, t.name, above, others[t.name], of(rows, t.share)-1))
	}
	return append(statements, afterFill)
}

// sharded are the names of the tables that have rows of users.
func sharded() []string {
	names := []string{"users", "profiles"}
	for _, t := range append(append([]table{}, chain...), pairs...) {
		names = append(names, t.name)
	}
	return names
}

// keyOf returns the user of a row t, and the joins that lead there.
func keyOf(name string) (key, joins string) {
	switch name {
	case "users":
		return "t.id", ""
	case "profiles", "albums", "likes":
		return "t.user_id", ""
	case "follows":
		return "t.follower", ""
	}
	above, column := "", ""
	for _, t := range append(append([]table{}, chain...), pairs...) {
		if t.name == name {
			above, column = t.above, t.parent
			if t.text == "" {
				column = t.id
			}
		}
	}
	var b strings.Builder
	from := "t." + column
	for i := len(chain) - 1; i >= 0; i-- {
		if t := chain[i]; t.name == above {
			fmt.Fprintf(&b, " join public.%s on %s = %[1]s.id", t.name, from)
			from, above = t.name+"."+t.parent, t.above
		}
	}
	return from, b.String()
}
