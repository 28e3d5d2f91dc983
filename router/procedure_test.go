package router_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A procedure that commits would go on under the session's own path.
func TestProcedures(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	b.run(ctx, t, `create procedure shard_00009.rename(t text) language plpgsql as $$ begin update photos set title = t; end $$;
		create procedure shard_00009.commits(t text) language plpgsql as $$ begin commit; update photos set title = t; end $$`)
	if _, err := s.Exec(ctx, poison); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`call rename('x')`, `call rename($1)`, `do $$ begin update photos set title = 'x'; end $$`} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, "x")
		}
		var title string
		if _, err := s.Exec(ctx, sql, args...); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		if err := s.QueryRow(ctx, `update photos set title = '' returning (select title from photos)`).Scan(&title); err != nil || title != "x" {
			t.Errorf("%s: title %q, %v", sql, title, err)
		}
	}
	for _, sql := range []string{`call commits('x')`, `call commits($1)`, `do $$ begin commit; end $$`} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, "x")
		}
		_, err := s.Exec(ctx, sql, args...)
		if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "2D000" {
			t.Errorf("%s: got %v", sql, err)
		}
	}
	var batch pgx.Batch
	batch.Queue(`call rename('x')`)
	for name, err := range map[string]error{
		"QueryRow":  s.QueryRow(ctx, `call rename('x')`).Scan(),
		"SendBatch": s.SendBatch(ctx, &batch).Close(),
	} {
		if err == nil || !strings.Contains(err.Error(), "use Exec or a transaction") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `call rename($1)`, "x")
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		return errors.Join(err, tx.SendBatch(ctx, &batch).Close())
	})
	if err != nil {
		t.Error(err)
	}
}
