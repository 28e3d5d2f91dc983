package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// atCommit are ways to insert a row, to move the path of the session, and then to commit.
var atCommit = map[string]func(ctx context.Context, s router.Shard) error{
	"one statement": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `with i as (insert into photos values (100, 1, 'x') returning 1) select public.wander() from i`)
		return err
	},
	"one statement with an argument": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `with i as (insert into photos values ($1, 1, 'x') returning 1) select public.wander() from i`, 100)
		return err
	},
	"Query": func(ctx context.Context, s router.Shard) error {
		return s.QueryRow(ctx, `with i as (insert into photos values (100, 1, 'x') returning 1) select public.wander() from i`).Scan(nil)
	},
	"a string of statements": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `insert into photos values (100, 1, 'x'); select public.wander()`)
		return err
	},
	"a batch": func(ctx context.Context, s router.Shard) error {
		var b pgx.Batch
		b.Queue(`insert into photos values (100, 1, 'x')`)
		b.Queue(`select public.wander()`)
		return s.SendBatch(ctx, &b).Close()
	},
	"a transaction": inTx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values (100, 1, 'x')`)
		return err
	}),
	"a transaction with a CommitQuery": inTx(pgx.TxOptions{CommitQuery: "/* all */ commit"}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values (100, 1, 'x')`)
		return err
	}),
	"a transaction with a savepoint": inTx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into photos values (100, 1, 'x')`)
			return err
		})
	}),
	"COPY": inTx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner", "title"}, pgx.CopyFromRows([][]any{{100, 1, "x"}}))
		return err
	}),
	"large objects": inTx(pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		objects := tx.LargeObjects()
		if _, err := objects.Create(ctx, 0); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into photos values (100, 1, 'x')`)
		return err
	}),
	"COMMIT as SQL": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `begin; insert into photos values (100, 1, 'x'); commit`)
		if err != nil {
			return err
		}
		tx, err := s.Begin(ctx)
		if err != nil {
			return err
		}
		_, _ = tx.Exec(ctx, `insert into photos values (101, 1, 'x')`)
		_, _ = tx.Exec(ctx, `select public.wander()`)
		_, err = tx.Exec(ctx, `commit`)
		_ = tx.Rollback(ctx) // the transaction has ended
		return err
	},
}

// inTx returns a way that inserts in a transaction, and moves the path just before its end.
func inTx(opts pgx.TxOptions, insert func(context.Context, pgx.Tx) error) func(context.Context, router.Shard) error {
	return func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, opts, func(tx pgx.Tx) error {
			if err := insert(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `select public.wander()`)
			return err
		})
	}
}

// A trigger that is deferred runs at the COMMIT, where no statement of the caller's follows: it finds the tables of its own shard,
// wherever a function has moved the path of the session before.
func TestDeferredTriggersStay(t *testing.T) {
	t.Parallel()
	checkEach(t, atCommit, checkAtCommit)
}

func TestDeferredTriggersStayBehindPgBouncer(t *testing.T) {
	t.Parallel()
	checkEachBehindPgBouncer(t, atCommit, checkAtCommit)
}

// deferTrigger gives shard 1 a deferred trigger that shows in which shard it has run.
func deferTrigger(ctx context.Context, t *testing.T, b *testBundle) {
	t.Helper()
	b.run(ctx, t, `create function public.late() returns trigger language plpgsql as $$ begin
update photos set title = 'changed late' where id = 1; return null; end $$`)
	b.run(ctx, t, `create constraint trigger late after insert on shard_00001.photos deferrable initially deferred
for each row execute function public.late()`)
}

func checkAtCommit(ctx context.Context, t *testing.T, b *testBundle, write func(context.Context, router.Shard) error) {
	t.Helper()
	b.run(ctx, t, `create function public.wander() returns int language plpgsql as $$ begin
perform set_config('search_path', 'shard_00063', false); return 1; end $$`)
	deferTrigger(ctx, t, b)
	if err := write(ctx, b.shard(t, 1)); err != nil {
		t.Fatal(err)
	}
	for shard, expected := range map[string]string{"shard_00001": "changed late", "shard_00063": "of shard 63"} {
		var title string
		if err := b.plain.QueryRow(ctx, `select title from `+shard+`.photos where id = 1`).Scan(&title); err != nil || title != expected {
			t.Errorf("%s: got %q, %v; expected %q", shard, title, err, expected)
		}
	}
}

// behindTheEnd are ways to insert a row behind the end of a transaction, and to commit then with the path of another shard.
var behindTheEnd = map[string]func(ctx context.Context, s router.Shard) error{
	"a string": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `commit; insert into photos values (100, 1, 'x'); call public.commits()`))
	},
	"a string in a transaction": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return second(tx.Exec(ctx, `rollback; insert into photos values (100, 1, 'x'); do $$ begin call public.commits(); end $$`))
		})
	},
	"a batch in a transaction": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(`commit`)
			b.Queue(`insert into photos values (100, 1, 'x')`)
			b.Queue(`call public.commits()`)
			return tx.SendBatch(ctx, &b).Close()
		})
	},
	"a string, where the session has the path of the shard": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `select public.keep(); commit; insert into photos values (100, 1, 'x'); call public.commits()`))
	},
	"a batch in a transaction, where the session has the path of the shard": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(`select public.keep()`)
			b.Queue(`commit`)
			b.Queue(`insert into photos values (100, 1, 'x')`)
			b.Queue(`do $$ begin call public.commits(); end $$`)
			return tx.SendBatch(ctx, &b).Close()
		})
	},
	"a CommitQuery": func(ctx context.Context, s router.Shard) error {
		const query = `commit; insert into photos values (100, 1, 'x'); call public.commits()`
		return s.Tx(ctx, pgx.TxOptions{CommitQuery: query}, func(pgx.Tx) error { return nil })
	},
}

// Nothing runs behind the end of a transaction: there a procedure can commit by itself, and the deferred triggers of what was before it would
// run where it has moved the path.
func TestNothingRunsBehindTheEnd(t *testing.T) {
	t.Parallel()
	checkEach(t, behindTheEnd, checkBehindTheEnd)
}

func TestNothingRunsBehindTheEndBehindPgBouncer(t *testing.T) {
	t.Parallel()
	checkEachBehindPgBouncer(t, behindTheEnd, checkBehindTheEnd)
}

func checkBehindTheEnd(ctx context.Context, t *testing.T, b *testBundle, write func(context.Context, router.Shard) error) {
	t.Helper()
	b.run(ctx, t, `create procedure public.commits() language plpgsql as $$ begin
perform set_config('search_path', 'shard_00063', false); commit; end $$`)
	b.run(ctx, t, `create function public.keep() returns text language sql as $$
select set_config('search_path', current_setting('search_path'), false) $$`)
	deferTrigger(ctx, t, b)
	// In Postgres 18 what stands behind the first statement of a message is in a transaction block, which the procedure cannot end.
	if err := write(ctx, b.shard(t, 1)); err == nil || !strings.Contains(err.Error(), "has ended the transaction") && !strings.Contains(err.Error(), "2D000") {
		t.Errorf("got %v, expected that the transaction was ended", err)
	}
	b.intact(ctx, t, "the end")
}
