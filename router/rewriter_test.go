package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
