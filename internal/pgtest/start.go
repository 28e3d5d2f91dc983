package pgtest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// Start starts a server of the test's own from the binaries on this machine, and stops it at the end of the test. Without binaries it
// skips the test, except in CI.
func Start(t testing.TB, cfg localpg.Config) *localpg.Server {
	t.Helper()
	cfg.Source, cfg.DSN = localpg.Local, ""
	server, err := localpg.Start(t.Context(), cfg)
	orSkip(t, err, "postgresql")
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// StartPgBouncer starts a PgBouncer, and stops it at the end of the test. Where there is none it skips the test, except in CI.
func StartPgBouncer(t testing.TB, cfg localpg.PgBouncerConfig) *localpg.PgBouncer {
	t.Helper()
	bouncer, err := localpg.StartPgBouncer(t.Context(), cfg)
	orSkip(t, err, "pgbouncer")
	t.Cleanup(func() {
		if err := bouncer.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return bouncer
}

// orSkip fails the test after an error, or skips it if the program of a Debian package is missing and this is not CI.
func orSkip(t testing.TB, err error, debian string) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, localpg.ErrUnavailable) && os.Getenv("CI") != "true":
		t.Skipf("%v: install Debian's package %s", err, debian)
	default:
		t.Fatal(err)
	}
}
