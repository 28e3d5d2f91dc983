package sql_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil { // each makes many calls; go test's -rapid.checks says another number
		panic(err)
	}
	os.Exit(shardtest.Run(m))
}

// bundle is one host with 8 shards, and a session of its owner.
type bundle struct {
	m    *shards.Map
	conn *pgx.Conn
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupLayout(t, shards.DefaultLayout)
}

func setupLayout(t *testing.T, layout shards.Layout) *bundle {
	t.Helper()
	m := shardtest.New(t, shardtest.Config{Shards: 8, Hosts: 1, Layout: layout}).Map
	return &bundle{m: m, conn: connect(t, m)}
}

// connect opens a session in which only qualified names resolve.
func connect(t *testing.T, m *shards.Map) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["search_path"] = ""
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// holdSetters takes the lock of a sequence's setters until the session's transaction ends.
func holdSetters(t *testing.T, conn *pgx.Conn, sequence string) {
	t.Helper()
	n := one[int](t, conn, "select $1::pg_catalog.regclass::pg_catalog.oid::bigint % $2", sequence, sql.Setters)
	exec(t, conn, "begin", fmt.Sprintf("lock table kiloshard_locks.setter_%d in share update exclusive mode", n))
}

// dropRole is for clean-up.
func dropRole(t *testing.T, m *shards.Map, role string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
		t.Error(err)
	}
}

// exec runs statements that must not fail.
func exec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// refused runs a statement that must fail with the given SQLSTATE.
func refused(t *testing.T, conn *pgx.Conn, sqlstate, statement string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != sqlstate {
		t.Errorf("%s: got %v, expected SQLSTATE %s", statement, err, sqlstate)
	}
}

// several returns the first column of a query.
func several[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// one returns the only value that a query gives.
func one[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) T {
	t.Helper()
	values := several[T](t, conn, query, args...)
	if len(values) != 1 {
		t.Fatalf("%s: got %d rows, expected one", query, len(values))
	}
	return values[0]
}

// checkNear checks that an ID's time lies between two readings of the clock, give or take 20 ms.
func checkNear(t *testing.T, m *shards.Map, id shards.ID, before, after time.Time) {
	t.Helper()
	const slack = 20 * time.Millisecond
	if at := m.Time(id); at.Before(before.Add(-slack)) || at.After(after.Add(slack)) {
		t.Errorf("ID %d says %s, expected %s to %s", id, at, before, after)
	}
}
