package rows_test

import (
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// forest is a service whose foreign keys do all that foreign keys can do, and whose triggers count what they see.
const forest = `
	create table log (id int generated always as identity, what text);
	create table users (id bigint primary key, name text, seen int not null default 0);
	create table boards (user_id bigint not null references users on delete cascade, no int not null, title text, primary key (user_id, no));
	create table posts (id bigint primary key, user_id bigint not null, no int not null, reply_to bigint references posts on delete cascade, best bigint, replies int not null default 0,
		foreign key (user_id, no) references boards on delete cascade on update cascade);
	alter table posts add foreign key (best) references posts on delete set null;
	create table marks (post_id bigint references posts on delete cascade on update cascade, kind text default 'none', by bigint, primary key (post_id, kind), check (kind <> 'bad'));
	create table notes (id bigint primary key, post_id bigint references posts on update cascade deferrable initially deferred, text text);
	create function count_replies() returns trigger language plpgsql as $$ begin
		if tg_op = 'INSERT' then update posts set replies = replies + 1 where id = new.reply_to;
		else update posts set replies = replies - 1 where id = old.reply_to; end if;
		return null; end $$;
	create trigger count_replies after insert or delete on posts for each row execute function count_replies();
	create function look() returns trigger language plpgsql as $$ begin update users set seen = seen + 1 where id = new.user_id; return new; end $$;
	create trigger look before update on posts for each row when (old.best is distinct from new.best) execute function look();
	insert into users select n, 'u' || n from generate_series(1, 12) n;
	insert into boards select n, b, 'b' from generate_series(1, 12) n, generate_series(1, 3) b;
	insert into posts (id, user_id, no, reply_to) select n * 100 + p, n, 1 + p % 3, case when p > 1 then n * 100 + p / 2 end from generate_series(1, 12) n, generate_series(1, 15) p;
	update posts set best = id + 1 where id % 5 = 0 and id % 100 < 15;
	insert into marks select id, 'k' || k from posts, generate_series(1, 2) k where id % 3 = 0;
	insert into notes select id, id, 'note' from posts where id % 4 = 0;
`

// changes are statements on the rows of one user, %[1]d, with posts %[1]d01 to %[1]d15.
var changes = []string{
	"delete from posts where id = %[1]d04",                                       // a tree
	"delete from notes where id = %[1]d12; delete from posts where id = %[1]d06", // its replies, one of which a post calls best
	"update posts set id = id + 50 where id = %[1]d15; update marks set by = 7 where post_id = %[1]d65",
	"update boards set no = 9 where user_id = %[1]d and no = 2",
	"insert into posts (id, user_id, no, reply_to) values (%[1]d80, %[1]d, 1, %[1]d81), (%[1]d81, %[1]d, 1, null)", // the child first
	"update posts set best = %[1]d81 where user_id = %[1]d and no = 1",
	"begin; insert into posts (id, user_id, no) values (%[1]d82, %[1]d, 9); insert into notes values (%[1]d90, %[1]d82, 'new'); commit",
	"with gone as (delete from marks where post_id = %[1]d03 returning *) insert into marks select post_id, kind || '!', 3 from gone",
	"insert into marks values (%[1]d03, 'k1!', 4) on conflict (post_id, kind) do update set by = excluded.by",
	"begin; savepoint a; delete from notes where post_id in (select id from posts where user_id = %[1]d); delete from boards where user_id = %[1]d and no = 9; rollback to a; update posts set best = null where id = %[1]d82; commit",
	"begin; set constraints all deferred; delete from notes where post_id = %[1]d82; delete from posts where id = %[1]d82; commit",
	"delete from posts where id in (%[1]d80, %[1]d81)",
	"with gone as (delete from marks where post_id = %[1]d11) delete from posts where id = %[1]d11", // children together with their parent
	"delete from notes where post_id in (select id from posts where user_id = %[1]d and no = 3); delete from boards where user_id = %[1]d and no = 3",
}

// early is a statement that the check option of a view refuses: it inserts the child first.
const early = "begin; insert into notes values (%[1]d99, %[1]d98, 'early'); insert into posts (id, user_id, no) values (%[1]d98, %[1]d, 1); commit"

// TestSame runs the same statements in a database that nobody adopts, and in an adopted one while its shards have views, are being copied, and have tables:
// the old tables have the same rows afterwards, and so do the shards.
func TestSame(t *testing.T) {
	t.Parallel()
	const file = "key: public.users.id\nstrategy: {by: modulo}\ntables:\n  - {table: public.log, is: left}\n  - {table: public.boards, is: keyed, by: user_id}\n" +
		"  - {table: public.posts, is: keyed, by: user_id, crosses: []}\n  - {table: public.notes, is: chained, through: notes_post_id_fkey, keyless: left}\n"
	b := setup(t, forest, file)
	w := b.twin(forest, "users", "boards", "posts", "marks", "notes", "log")
	same := func(stage string, user int) {
		t.Helper()
		n, err := b.m.ForKey(int64(user))
		if err != nil {
			t.Fatal(err)
		}
		shard := b.in(n)
		all := changes
		if stage == "tables" {
			all = append([]string{early}, changes...)
		}
		for _, change := range all {
			w.same(stage, shard, fmt.Sprintf(change, user))
		}
	}
	same("views", 1)
	cfg := b.config()
	cfg.Parallel = 1
	report, copied := cfg.Report, 0
	cfg.Report = func(e rows.Event) {
		report(e)
		if e.Kind == rows.Copying && e.Shards.Has(2) {
			same("copying", 2)
		}
		if e.Kind == rows.Copied {
			if copied++; copied == 2 { // some tables have copies, and others have none
				same("copying", 6)
			}
		}
		if e.Kind == rows.Compared && copied >= 5 {
			copied = -100
			same("copying", 10)
		}
	}
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, user := range []int{3, 4, 5} {
		same("tables", user)
	}
	cfg.Report, cfg.Shards = report, shards.Set{}
	if _, err := rows.Back(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	same("views", 7)
}
