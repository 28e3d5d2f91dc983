package connect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Sessions of commands have settings that PgBouncer refuses. The error says so in one line that is always the same, and a pool connects.
func TestPooler(t *testing.T) {
	t.Parallel()
	bouncer := pgtest.StartPgBouncer(t, localpg.PgBouncerConfig{DSN: plain.DSN("postgres")})
	dsn := bouncer.DSN("postgres")
	check := func(what string, err error, want ...string) {
		t.Helper()
		if !errors.Is(err, connect.ErrPooler) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", what, err)
		}
		checkText(t, err.Error(), want...)
	}
	var first string
	for range 5 {
		_, err := connect.Open(t.Context(), hostOf(dsn), nil)
		check("Open", err, "user postgres, database postgres: "+bouncer.Address()+": ", "unsupported startup parameter (SQLSTATE 08P01); a pooler such as PgBouncer")
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("got %v, and before %s", err, first)
		}
	}
	_, err := connect.OpenPlain(t.Context(), hostOf(dsn), nil)
	check("OpenPlain", err)
	down := closed(t)
	_, err = connect.Open(t.Context(), hostOf(places(t, dsn, bouncer.Address(), down)), nil)
	check("one of two addresses", err, down+": ", "connection refused", bouncer.Address()+": ")

	login, config, err := connect.ForPool(hostOf(dsn))
	if err != nil {
		t.Fatal(err)
	}
	login.Attend(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := login.Try(t.Context(), pool.Ping); err != nil {
		t.Errorf("a pool: %v", err)
	}
}
