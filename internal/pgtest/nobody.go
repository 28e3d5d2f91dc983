// Package pgtest is what tests of several packages do on a server.
package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// Nobody returns a session of a role that may connect to a database and has no other rights. The role is dropped at the end of
// the test. A database has one at a time.
func Nobody(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	connect := func(ctx context.Context, dsn string) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	owner := connect(t.Context(), dsn)
	defer func() { _ = owner.Close(context.Background()) }() // it has done what it was to do
	role := "nobody_" + owner.Config().Database
	name := pgx.Identifier{role}.Sanitize()
	if _, err := owner.Exec(t.Context(), "create role "+name+" login password 'secret'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn := connect(context.Background(), dsn)
		defer func() { _ = conn.Close(context.Background()) }() // likewise
		if _, err := conn.Exec(context.Background(), "drop role "+name); err != nil {
			t.Error(err)
		}
	})
	nobody := connect(t.Context(), localpg.AsRole(dsn, role, "secret"))
	t.Cleanup(func() { _ = nobody.Close(context.Background()) }) // before the role is dropped
	return nobody
}
