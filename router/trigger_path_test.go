package router_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// What a function does to the path holds for the rest of its statement, as package router's Limits say: a COMMIT is one statement,
// in which one deferred trigger moves the path for the next. The next statement finds its own shard.
func TestTriggerMovesThePathOfTheNext(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create function public.first() returns trigger language plpgsql as $$ begin
perform set_config('search_path', 'shard_00063', true); return null; end $$;
create function public.second() returns trigger language plpgsql as $$ begin
update photos set title = 'of ' || current_schema; return null; end $$;
create constraint trigger a after insert on shard_00001.photos deferrable initially deferred for each row execute function public.first();
create constraint trigger b after insert on shard_00001.photos deferrable initially deferred for each row execute function public.second()`)
	s := b.shard(t, 1)
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values (100, 1, 'x')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(ctx, t, s, `select title from photos where id = 1`); got != "of shard 1" {
		t.Errorf("shard 1 has %q", got)
	}
	if got := ask(ctx, t, b.shard(t, 63), `select title from photos where id = 1`); got != "of shard_00063" {
		t.Errorf("the second trigger has written %q to shard 63", got)
	}
}
