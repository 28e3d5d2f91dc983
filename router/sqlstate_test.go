package router_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

// onHost runs SQL past the router.
func onHost(ctx context.Context, t testing.TB, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal("connect to a host")
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// valueOn returns the one value of a query on a host, as text.
func valueOn(ctx context.Context, t testing.TB, dsn, query string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal("connect to a host")
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, `select (`+query+`)::text`).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func sqlState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// The codes of the server's own errors may be raised by functions, and mean something else then.
func TestRaisedCodes(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	b.run(ctx, t, `create sequence public.runs; create function public.refuse() returns int language plpgsql as $$ begin
perform nextval('public.runs'); raise exception 'no' using errcode = '57P05'; end $$`)
	_, err := s.Exec(ctx, `select public.refuse()`)
	if got := ask(ctx, t, s, `select last_value::text from public.runs`); got != "1" || router.SafeToRetry(err) {
		t.Errorf("it ran %s times, %v", got, err)
	}
	_, err = s.Exec(ctx, `do $$ begin raise exception 'not your photo' using errcode = '42501'; end $$`)
	if err == nil || strings.Contains(err.Error(), "kiloshard grant") {
		t.Errorf("got %v", err)
	}
}
