package shardtest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// OwnServer starts a server for one test from this machine's server binaries, and stops it when the test ends. The test
// may kill it, freeze it, and promote a [Standby] of it. If there are no binaries, the test fails in CI and is skipped
// elsewhere. OwnServer does not need [Run].
func OwnServer(t testing.TB) *localpg.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	s, err := localpg.Start(ctx, localpg.Config{
		Source: localpg.Local, Dir: os.Getenv("KILOSHARD_POSTGRES_DIR"),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB"},
	})
	if errors.Is(err, localpg.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skipf("%v: install Debian's package postgresql", err)
	}
	return stopLater(t, s, err)
}

// Standby starts a standby of an [OwnServer] with the given application_name, and stops it when the test ends.
func Standby(t testing.TB, of *localpg.Server, name string) *localpg.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	backup, err := of.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := backup.Standby(ctx, name, nil)
	return stopLater(t, s, err)
}

func stopLater(t testing.TB, s *localpg.Server, err error) *localpg.Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}
