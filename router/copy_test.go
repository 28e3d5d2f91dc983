package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

func TestCopyFrom(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `alter table shard_00002.photos alter owner type int using owner::int`)
	for _, n := range []int{1, 2, 1} { // the column's type differs
		s := b.shard(t, n)
		copied, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner"}, pgx.CopyFromRows([][]any{{100 + copies(ctx, t, s), n}}))
		if err != nil || copied != 1 {
			t.Errorf("shard %d: %d rows, %v", n, copied, err)
		}
	}
	s := b.shard(t, 1)
	if got := copies(ctx, t, s); got != 3 {
		t.Errorf("%d rows", got)
	}
	if copied, err := s.CopyFrom(ctx, pgx.Identifier{"shard_00003", "photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{100}})); err != nil || copied != 1 {
		t.Errorf("into another schema: %d, %v", copied, err)
	}
	if _, err := s.CopyFrom(ctx, pgx.Identifier{"nowhere"}, []string{"id"}, pgx.CopyFromRows(nil)); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
	if copied, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{200}, {1}})); err == nil || copied != 0 {
		t.Errorf("a row twice: %d, %v", copied, err)
	}
	if got := copies(ctx, t, s); got != 3 {
		t.Errorf("%d rows after a copy that failed", got)
	}
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { // the usual way to a bulk update
		if _, err := tx.Exec(ctx, `create temp table incoming (id bigint, title text) on commit drop`); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"incoming"}, []string{"id", "title"}, pgx.CopyFromRows([][]any{{1, "new"}})); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update photos p set title = i.title from incoming i where i.id = p.id`)
		if tag.RowsAffected() != 1 {
			t.Errorf("updated: %s", tag)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	b.isFree(ctx, t)
}

// What a trigger does while rows come in is done in the shard too.
func TestCopyFromFiresTriggers(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	for _, schema := range []string{"shard_00001", "shard_00063"} {
		b.run(ctx, t, `set search_path = `+schema+`; create table log (id bigint);
			create function logged() returns trigger language plpgsql as $$ begin insert into log values (new.id); return new; end $$;
			create trigger logged after insert on photos for each row execute function logged(); reset search_path`)
	}
	s := b.shard(t, 1)
	if _, err := s.Exec(ctx, poison); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{7}})); err != nil {
		t.Fatal(err)
	}
	var id int64
	if err := s.QueryRow(ctx, `select id from log`).Scan(&id); err != nil || id != 7 {
		t.Errorf("logged %d, %v", id, err)
	}
}

func copies(ctx context.Context, t *testing.T, s router.Shard) (count int) {
	t.Helper()
	if err := s.QueryRow(ctx, `select count(*) from photos`).Scan(&count); err != nil {
		t.Error(err)
	}
	return count
}
