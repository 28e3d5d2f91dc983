package router_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// rewrite is a [pgx.QueryRewriter].
type rewrite func() (string, []any, error)

func (r rewrite) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return r()
}

func rewriteTo(sql string) rewrite { return func() (string, []any, error) { return sql, nil, nil } }

// What holds for SQL holds for what a rewriter makes of it.
func TestRewrittenSQL(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	b.run(ctx, t, `create procedure public.commits() language plpgsql as $$ begin insert into photos values (70, 1, 'x'); commit; end $$`)
	if _, err := s.Exec(ctx, `-- by name`, rewriteTo(`call public.commits()`)); err == nil || !strings.Contains(err.Error(), "use a transaction") {
		t.Errorf("a procedure: got %v", err)
	}
	if got := ask(ctx, t, s, `select count(*)::text from photos where id = 70`); got != "0" {
		t.Error("a procedure has committed by itself")
	}
	if _, err := s.Exec(ctx, `-- by name`, rewriteTo(`listen news`)); err == nil || !strings.Contains(err.Error(), "connection of its own") {
		t.Errorf("LISTEN: got %v", err)
	}
	for _, c := range leftovers {
		if _, err := s.Exec(ctx, `-- by name`, rewriteTo(c.leave)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := ask(ctx, t, s, c.ask); got != c.want {
			t.Errorf("%s: the next caller has %s", c.name, got)
		}
	}
}

// A rewriter that panics is its own caller's error: the connection is given back.
func TestRewriterThatPanics(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	panics := rewrite(func() (string, []any, error) { panic("in a test") })
	var batch pgx.Batch
	batch.Queue(`select 1`, panics)
	_, inExec := s.Exec(ctx, `select 1`, panics)
	_, inQuery := s.Query(ctx, `select 1`, panics)
	_, behind := s.Query(ctx, `select 1`, pgx.NamedArgs{}, panics)
	for what, err := range map[string]error{
		"Exec": inExec, "Query": inQuery, "behind NamedArgs": behind, "SendBatch": s.SendBatch(ctx, &batch).Close(),
	} {
		if err == nil || !strings.Contains(err.Error(), "in a test") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	b.isFree(ctx, t)
}

// The result formats that one caller asks for are no other caller's.
func TestFormatsOfOneCaller(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	const query = `select owner, title from photos where id = @id`
	named := pgx.NamedArgs{"id": 1}
	familiar(ctx, t, b.shard(t, 9), query, named)
	s := b.shard(t, 1)
	read := func(args ...any) (err error) {
		letGo := hold(ctx, t, s)
		var reading sync.WaitGroup
		reading.Go(func() {
			var rows pgx.Rows
			if rows, err = s.Query(ctx, query, args...); err == nil {
				rows.Close()
				err = rows.Err()
			}
		})
		b.waits(ctx, t, 1)
		letGo()
		reading.Wait()
		return err
	}
	if err := read(named, pgx.QueryResultFormats{0, 0, 0}); err == nil {
		t.Error("three formats were good for two columns")
	}
	time.Sleep(1100 * time.Millisecond) // for a second, a text that has failed is sent alone
	if err := read(named); err != nil {
		t.Errorf("another caller: %v", err)
	}
}

// A Reader writes in no transaction, whatever begins it.
func TestReaderThatChains(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	err := s.ReadOnly(router.Reads{}).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		for _, sql := range []string{`commit and chain`, `set transaction read write`, `delete from photos`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if got := ask(ctx, t, s, `select count(*)::text from photos`); err == nil || got != "1" {
		t.Errorf("a reader has written: %s rows are left, %v", got, err)
	}
}
