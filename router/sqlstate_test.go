package router_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
