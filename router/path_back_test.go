package router_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A view is replaced by one that moves the path, after the catalog has vouched for a read of it. Other reads of its group are answered by
// their own shard, and it is in no group again.
func TestReplacedViewMovesThePath(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create view shard_00001.away as select title as path from shard_00001.photos`)
	s := b.shard(t, 1)
	const away, owner = `select path from away`, `select owner::text from photos where id = 1`
	for _, sql := range []string{away, owner} {
		familiar(ctx, t, s, sql)
		if !s.Repeats(sql) {
			t.Fatalf("the catalog does not vouch for %s", sql)
		}
	}
	b.run(ctx, t, `create or replace view shard_00001.away as select set_config('search_path', 'shard_00063, pg_temp', true) as path from shard_00001.photos`)
	before := b.Stats()[0].Batched
	letGo := hold(ctx, t, s)
	var reads sync.WaitGroup
	for i, sql := range []string{away, owner} {
		reads.Go(func() {
			if got := ask(ctx, t, s, sql); sql == owner && got != "1" {
				t.Errorf("shard 1 was answered by %s", got)
			}
		})
		b.waits(ctx, t, i+1)
	}
	letGo()
	reads.Wait()
	if got := b.Stats()[0].Batched; got != before+2 {
		t.Errorf("%d reads were sent together, so that the test proves nothing", got-before)
	}
	if s.Repeats(away) {
		t.Error("the view's read may be in a group again")
	}
}

// If a view moves the path only after it was seen not to, the router does not notice: see Limits. With NoGroups nothing is
// beside it.
func TestPathMovedAtTimes(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1, alone: true})
	read := b.awayAndBack(ctx, t)
	for range 2 {
		if got := read(); got != "1" {
			t.Errorf("shard 1 was answered by %s", got)
		}
		b.run(ctx, t, `insert into public.moves values (true)`)
	}
}

// awayAndBack makes two views of shard 1. One moves the path away if public.moves has a row, the other moves it back. read
// has the router take a read of each, and one of photos between them, while the only connection is in use. It returns the
// owner in photos.
func (b *testBundle) awayAndBack(ctx context.Context, t *testing.T) (read func() (owner string)) {
	t.Helper()
	b.run(ctx, t, `create table public.moves (yes bool);
create view shard_00001.away as select case when exists (select from public.moves) then set_config('search_path', 'shard_00063, pg_temp', true) end as path;
create view shard_00001.back as select set_config('search_path', 'shard_00001, pg_temp', true) as path;
create view shard_00063.back as select * from shard_00001.back`)
	s := b.shard(t, 1)
	queries := []string{`select path from away`, `select owner::text from photos where id = 1`, `select path from back`}
	for _, query := range queries {
		familiar(ctx, t, s, query)
	}
	return func() (owner string) {
		letGo := hold(ctx, t, s)
		var reads sync.WaitGroup
		for i, query := range queries {
			reads.Go(func() {
				rows, err := s.Query(ctx, query)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[*string])
				if err != nil {
					t.Errorf("%s: %v", query, err)
				} else if i == 1 {
					owner = *got
				}
			})
			b.waits(ctx, t, i+1)
		}
		letGo()
		reads.Wait()
		return owner
	}
}
