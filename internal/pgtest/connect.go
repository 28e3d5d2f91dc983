package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Connect returns a session that takes several statements in a string, on a server with any settings. It is closed at the end of the test.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test has ended
	return conn
}

// Open is [Connect] for a server that may not answer. The caller closes the session.
func Open(ctx context.Context, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["standard_conforming_strings"], config.RuntimeParams["client_encoding"] = "on", "UTF8" // pgx asks for these
	return pgx.ConnectConfig(ctx, config)
}
