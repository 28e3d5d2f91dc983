package views_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// refused checks that an error is that of a row which the check option refuses.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != "44000" {
		t.Errorf("%s: got %v, expected with_check_option_violation", what, err)
	}
}

// TestStatements holds that statements by way of the router write to the old tables, and that old code sees that and goes on.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "- {table: public.albums, is: keyed, by: user_id, copy: true}\n- {table: public.photos, is: chained, through: photos_album_id_fkey, copy: true}\n"} {
		b := adopted(t, service, file)
		r := b.router()
		s := b.shard(r, 7)
		for _, step := range []struct{ query, want, old, oldWant string }{
			{"select count(*) from users", "12", "select count(*) from users", "50"},
			{"insert into albums (user_id) values (7) returning title", "untitled", "select user_id, title from albums order by id desc limit 1", "7 untitled"},
			{"insert into albums (id, user_id, title) values (1001, 7, 'one') returning id", "1001", "select title from albums where id = 1001", "one"},
			{"update albums set title = 'two' where id = 1001 returning title", "two", "select title from albums where id = 1001", "two"},
			{"insert into photos (id, album_id, title) values (2001, 1001, 'cat') returning title", "cat", "select title from photos where album_id = 1001", "cat"},
			{"insert into photos (album_id, title) values (1001, 'dog') returning id", "1001", "select id from photos where title = 'dog'", "1001"},
			{"update photos set title = 'kitten' where id = 2001 returning album_id", "1001", "select title from photos where id = 2001", "kitten"},
			{"select p.title from photos p join albums a on a.id = p.album_id where a.user_id = 7 and p.id = 2001 for update of p", "kitten", "select 1", "1"},
			{"delete from photos where id = 2001 returning id", "2001", "select count(*) from photos where id = 2001", "0"},
			{"delete from albums where id = 1001 returning id", "1001", "select count(*) from photos where album_id = 1001", "0"},
		} {
			if got := value(t, s, step.query); got != step.want {
				t.Errorf("%s: got %s, expected %s", step.query, got, step.want)
			}
			if got := b.run(step.old); !slices.Equal(got, []string{step.oldWant}) {
				t.Errorf("%s: then %s got %q, expected %s", step.query, step.old, got, step.oldWant)
			}
		}
		b.run("insert into albums (id, user_id) values (1002, 7), (1003, 8); update albums set title = 'old' where id = 1002")
		if got := value(t, s, "select string_agg(title, ',') from albums where id in (1002, 1003)"); got != "old" {
			t.Errorf("the shard reads %s", got)
		}
	}
}

// TestConflicts holds that INSERT … ON CONFLICT works without copy: true.
func TestConflicts(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	s := b.shard(b.router(), 7)
	const upsert = "insert into albums (id, user_id, title) values ($1, $2, 'mine') on conflict (id) do update set title = 'again' returning title"
	for _, want := range []string{"mine", "again"} {
		if got := value(t, s, upsert, 1001, 7); got != want {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
	if got := value(t, s, "with i as (insert into albums (id, user_id) values (1001, 7) on conflict do nothing returning 1) select count(*) from i"); got != "0" {
		t.Errorf("do nothing inserted %s", got)
	}
	b.run("insert into albums (id, user_id) values (1002, 8)")
	copied := adopted(t, service, "- {table: public.albums, is: keyed, by: user_id, copy: true}\n")
	for _, action := range []string{"(id) do update set title = 'x'", "(id) do nothing", "do nothing"} {
		if tag, err := copied.shard(copied.router(), 7).Exec(t.Context(), "insert into albums (id, user_id) values (6, 7) on conflict "+action); err == nil {
			t.Errorf("with copy: true, on conflict %s works: %s", action, tag)
		}
	}
	_, err := s.Exec(t.Context(), upsert, 1002, 7) // the row is of another shard
	refused(t, "on conflict", err)
	if got := b.run("select user_id, title from albums where id = 1002"); !slices.Equal(got, []string{"8 untitled"}) {
		t.Errorf("the row of another shard is %q", got)
	}
}

// TestRowsOfOtherShards holds that Postgres refuses rows that would not be in the shard, and that a shard finds none of others.
func TestRowsOfOtherShards(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "- {table: public.albums, is: keyed, by: user_id, copy: true}\n- {table: public.photos, is: chained, through: photos_album_id_fkey, copy: true}\n"} {
		b := adopted(t, service, file)
		b.run("insert into albums (id, user_id) values (1001, 7), (1002, 8); insert into photos (id, album_id, title) values (2001, 1001, 'cat')")
		s := b.shard(b.router(), 7)
		for _, statement := range []string{
			"insert into albums (user_id) values (8)",
			"insert into photos (album_id) values (1002)",
			"update albums set user_id = 8 where id = 1001",
			"update photos set album_id = 1002 where id = 2001",
			"insert into users (id, email) values (100, 'x')",
			"update users set id = 8 where id = 7",
		} {
			_, err := s.Exec(t.Context(), statement)
			if strings.HasPrefix(statement, "update users") { // the foreign key refuses it first or later
				if err == nil {
					t.Errorf("%s works", statement)
				}
				continue
			}
			refused(t, statement, err)
		}
		// The check of a chained row has the snapshot of its statement, so that it does not see a parent of the same one.
		_, err := s.Exec(t.Context(), "with a as (insert into albums (user_id) values (7) returning id) insert into photos (album_id) select id from a")
		if file == "" {
			refused(t, "parent and child in one statement", err)
		} else if err != nil { // a trigger inserts each row by a statement of its own
			t.Errorf("parent and child in one statement: %v", err)
		}
		for _, statement := range []string{"update albums set title = 'mine' where id = 1002", "delete from albums where id = 1002"} {
			if tag, err := s.Exec(t.Context(), statement); err != nil || tag.RowsAffected() != 0 {
				t.Errorf("%s: %v, %v", statement, tag, err)
			}
		}
		if _, err := s.Exec(t.Context(), "update albums set user_id = 11 where id = 1001"); err != nil { // another key of this shard
			t.Error(err)
		}
	}
}

// TestNextID holds that a row which is inserted by way of a shard has an ID of the shard, and one of the old code or of a table with int IDs
// one of the old sequence.
func TestNextID(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	r := b.router()
	for user := int64(1); user <= 4; user++ {
		s := b.shard(r, user)
		id, err := strconv.ParseInt(value(t, s, "insert into albums (user_id) values ($1) returning id", user), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n := b.m.Layout().Parts(shards.ID(id)).Shard; n != shards.Number(user%4) {
			t.Errorf("ID %d is of shard %d, expected %d", id, n, user%4)
		}
		byID, err := r.ForID(shards.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, byID, "insert into photos (album_id) values ($1) returning id", id); got != fmt.Sprint(1000+user) {
			t.Errorf("the int ID is %s, expected the next of the sequence", got)
		}
	}
	if got := b.run("insert into albums (user_id) values (1) returning id"); !slices.Equal(got, []string{"201"}) {
		t.Errorf("old code gets ID %q", got)
	}
	sequence := adopted(t, service, "- {table: public.albums, is: keyed, by: user_id, ids: sequence}\n")
	if got := value(t, sequence.shard(sequence.router(), 7), "insert into albums (user_id) values (7) returning id"); got != "201" {
		t.Errorf("with ids: sequence the ID is %s", got)
	}
}

// TestCopy holds that COPY writes to the view of a table with copy: true, with the defaults of the old table, and refuses rows of others.
func TestCopy(t *testing.T) {
	t.Parallel()
	b := adopted(t, service+`
		create table events (
			n int generated always as identity, user_id bigint not null references users, what text default 'nothing',
			twice int generated always as (length(what) * 2) stored, "At" timestamptz not null default now());
	`, "- {table: public.albums, is: keyed, by: user_id, copy: true}\n- {table: public.events, is: keyed, by: user_id, copy: true}\n")
	s := b.shard(b.router(), 7)
	copyFrom := func(table string, columns []string, rows ...[]any) error {
		tx, err := s.Begin(t.Context())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.CopyFrom(t.Context(), pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
			return err
		}
		return tx.Commit(t.Context())
	}
	if err := copyFrom("albums", []string{"user_id"}, []any{7}, []any{11}); err != nil {
		t.Error(err)
	}
	if err := copyFrom("events", []string{"user_id", "what"}, []any{7, "x"}, []any{7, nil}); err != nil {
		t.Error(err)
	}
	if err := copyFrom("events", []string{"n", "user_id"}, []any{77, 7}); err != nil {
		t.Error(err)
	}
	refused(t, "COPY of a row of another shard", copyFrom("albums", []string{"user_id"}, []any{7}, []any{8}))
	if got := b.run("select count(*), bool_and(title = 'untitled') from albums where id > 200"); !slices.Equal(got, []string{"2 t"}) {
		t.Errorf("albums are %q", got)
	}
	if got := b.run(`select n, what, twice, "At" is not null from events order by n`); !slices.Equal(got, []string{"1 x 2 t", "2   t", "77 nothing 14 t"}) {
		t.Errorf("events are %q", got)
	}
	if got := value(t, s, "insert into events (user_id) values (7) returning twice"); got != "14" {
		t.Errorf("a generated column is %s", got)
	}
	if _, err := s.Exec(t.Context(), "insert into events (user_id, twice) values (7, 1)"); err == nil {
		t.Error("a generated column can be set")
	}
	plain := adopted(t, service, "")
	if _, err := plain.shard(plain.router(), 7).CopyFrom(t.Context(), pgx.Identifier{"albums"}, []string{"user_id"}, pgx.CopyFromRows([][]any{{7}})); err == nil {
		t.Error("COPY works without copy: true")
	}
}

// TestPlans holds that a statement with a key, and one with an ID, reads an index of the old table.
func TestPlans(t *testing.T) {
	t.Parallel()
	b := adopted(t, service+`
		create index on albums (user_id); create index on photos (album_id);
		insert into users (email) select 'more' || n from generate_series(1, 20000) n;
		insert into albums (user_id) select n from generate_series(51, 20000) n;
		insert into photos (album_id) select id from albums;
		analyze;
	`, "")
	s := b.shard(b.router(), 7)
	for _, query := range []string{
		"select * from users where id = 7", "select * from albums where user_id = 7", "select * from photos where id = 100",
		"select p.* from photos p join albums a on a.id = p.album_id where a.user_id = 7", "update albums set title = 'x' where id = 100",
		"select * from albums where user_id = 7 order by id limit 10",
	} {
		plan := explain(t, s, query)
		if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Index") && !strings.Contains(plan, "Bitmap") {
			t.Errorf("%s is\n%s", query, plan)
		}
	}
}

func explain(t *testing.T, s router.Shard, query string) string {
	t.Helper()
	rows, err := s.Query(t.Context(), "explain "+query)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
