package router_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// hiddenEnds are ways to end a transaction behind the router's back, and to go on with photos. public.f moves the path of the
// session to shard 63.
var hiddenEnds = map[string]func(context.Context, router.Shard) error{
	"commit in a batch":              hiddenInBatch(`/* /* */ */ commit`, `delete from photos`),
	"rollback in a batch":            hiddenInBatch(`select public.f()`, `/* /* */ */ rollback`, `delete from photos`),
	"prepare transaction in a batch": hiddenInBatch(`insert into photos values (7, 1, 'x')`, `prepare transaction 'x'`, `delete from photos`),
	"procedure in a batch":           hiddenInBatch(`/* /* */ */ call public.p()`, `delete from photos`),
	"do in a batch":                  hiddenInBatch(`select public.f()`, `/* /* */ */ do $$ begin rollback; delete from photos; end $$`),
	"string": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `select public.f(); /* /* */ */ rollback; delete from photos`)
		return err
	},
	"procedure": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `/* /* */ */ call public.p()`)
		return err
	},
	"procedure as a query": func(ctx context.Context, s router.Shard) error {
		rows, err := s.Query(ctx, `/* /* */ */ call public.p()`)
		rows.Close()
		return err
	},
	"commit in a transaction":   hiddenInTx(`select public.f()`, `/* */ commit; delete from photos`),
	"rollback to a savepoint":   hiddenInTx(`select public.f(); savepoint a`, `rollback to a; commit; delete from photos`),
	"begin that is a comment":   hiddenInBegin(`begin -- `),
	"begin and f in a comment":  hiddenInBegin(`begin; select public.f() -- `),
	"begin that is none":        hiddenInBegin(`select public.f()`),
	"begin, commit, delete":     hiddenInBegin(`begin; select public.f(); commit; delete from photos; begin`),
	"begin in a nested comment": hiddenInBegin(`/* /* */ begin; */ delete from photos`),
	"commit query": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{CommitQuery: `commit; delete from photos`}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select public.f()`)
			return err
		})
	},
}

func hiddenInBatch(texts ...string) func(context.Context, router.Shard) error {
	return func(ctx context.Context, s router.Shard) error {
		var batch pgx.Batch
		for _, text := range texts {
			batch.Queue(text)
		}
		return s.SendBatch(ctx, &batch).Close()
	}
}

func hiddenInTx(texts ...string) func(context.Context, router.Shard) error {
	return func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			for _, text := range texts {
				_, _ = tx.Exec(ctx, text)
			}
			return nil
		})
	}
}

func hiddenInBegin(query string) func(context.Context, router.Shard) error {
	return func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{BeginQuery: query}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `delete from photos`)
			return err
		})
	}
}

// Text may hide the end of its transaction: what comes after it fails, or is done in its own shard. The session was left
// with the path of another shard by a function, as far as it lets itself.
func TestHiddenEnds(t *testing.T) {
	t.Parallel()
	checkEach(t, hiddenEnds, checkHiddenEnd)
}

func TestHiddenEndsBehindPgBouncer(t *testing.T) {
	t.Parallel()
	checkEachBehindPgBouncer(t, hiddenEnds, checkHiddenEnd)
}

func checkHiddenEnd(ctx context.Context, t *testing.T, b *testBundle, way func(context.Context, router.Shard) error) {
	t.Helper()
	b.run(ctx, t, `create function public.f() returns int `+wanderers["set_config"])
	b.run(ctx, t, `create procedure public.p() language plpgsql as $$ begin
perform set_config('search_path', '', false); commit; delete from photos; end $$`)
	s := b.shard(t, 1)
	for _, before := range []string{`select 1`, `select public.f()`} {
		if _, err := s.Exec(ctx, before); err != nil {
			t.Fatal(err)
		}
		t.Logf("after %s: %v", before, way(ctx, s))
		_, _ = b.plain.Exec(ctx, `rollback prepared 'x'`) // there may be none; it would hold its locks
		b.intact(ctx, t, before)
		if got := ask(ctx, t, s, `select current_schema::text`); got != "shard_00001" {
			t.Errorf("the next statement is in %s", got)
		}
	}
}
