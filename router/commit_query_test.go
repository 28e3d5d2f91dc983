package router_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The CommitQuery of a transaction that has ended is not sent: outside a transaction it could reach another shard.
func TestCommitQueryAfterTheEnd(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create function public.wander() returns int language plpgsql as $$ begin perform set_config('search_path', 'shard_00063', false); return 1; end $$`)
	for _, end := range []string{"commit", "rollback"} {
		for _, first := range []string{"set transaction read write", "savepoint a", "commit"} {
			tx, err := b.shard(t, 5).BeginTx(ctx, pgx.TxOptions{CommitQuery: first + "; do $$ begin commit; update photos set title = 'of shard 5'; end $$"})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = tx.Exec(ctx, "select public.wander()")
			_, _ = tx.Exec(ctx, end)
			if err := tx.Commit(ctx); err == nil || !strings.Contains(err.Error(), "ended by a statement of its own") {
				t.Errorf("%s, then %s: got %v", end, first, err)
			}
		}
	}
	var rows int
	if err := b.plain.QueryRow(ctx, `select count(*) from shard_00063.photos where title = 'of shard 5'`).Scan(&rows); err != nil || rows > 0 {
		t.Errorf("%d rows of shard 63 were written for shard 5, %v", rows, err)
	}
	b.isFree(ctx, t)
}
