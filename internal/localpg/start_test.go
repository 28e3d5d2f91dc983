//go:build unix

package localpg_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestNothingToBeHad(t *testing.T) {
	t.Parallel()
	empty := http.NotFoundHandler()
	repository := httptest.NewServer(empty)
	defer repository.Close()

	_, err := localpg.Start(t.Context(), localpg.Config{
		BinDir: t.TempDir(), Image: "kiloshard.invalid/none:0", DownloadURL: repository.URL, CacheDir: t.TempDir(),
	})
	equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), true)
	text := err.Error()
	equal(t, "lines in "+text, strings.Count(text, "\n"), 0)
	for _, want := range []string{
		"no Postgres available: no server binaries (looked for postgres and initdb, version 15 or later, in ",
		", Docker: ", ", download: no version found",
		"; install Debian's postgresql package, or Docker, or set KILOSHARD_POSTGRES_DSN",
	} {
		equal(t, want+" in "+text, strings.Contains(text, want), true)
	}
}

func TestNamedSourceIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	_, err := localpg.Start(t.Context(), localpg.Config{Source: localpg.Local, BinDir: t.TempDir()})
	equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), true)
	equal(t, err.Error(), strings.HasPrefix(err.Error(), "start Postgres (source local): no server binaries"), true)

	_, err = localpg.Start(t.Context(), localpg.Config{DSN: "postgres://127.0.0.1:1/x?sslmode=disable"})
	equal(t, "a DSN that leads nowhere is an error", err == nil, false)
	equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), false)
}

func TestServerThatGivesUp(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	_, err := localpg.Start(t.Context(), localpg.Config{
		Dir: publicDir(t), Settings: map[string]string{"shared_buffers": "no size"},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	equal(t, "an error", err == nil, false)
	want := `invalid value for parameter "shared_buffers": "no size"`
	equal(t, want+" in "+err.Error(), strings.Contains(err.Error(), want), true)
	equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), false)
}

// Start is given up at each stage that can be told from outside.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	for _, stage := range []struct{ name, file string }{
		{"directory made", "kiloshard-pg-*"},
		{"initdb begun", "kiloshard-pg-*/data/PG_VERSION"},
		{"initdb at work", "kiloshard-pg-*/data/base/1/PG_VERSION"},
		{"server begun", "kiloshard-pg-*/data/postmaster.pid"},
	} {
		t.Run(stage.name, func(t *testing.T) {
			t.Parallel()
			dir := publicDir(t)
			eventually(t, "it is given up in time", func() bool {
				// Without a template, initdb runs.
				err := giveUp(t, localpg.Config{Source: localpg.Local, Dir: dir, CacheDir: t.TempDir()}, func() bool {
					found, err := filepath.Glob(filepath.Join(dir, stage.file))
					return err == nil && len(found) > 0
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				return err != nil
			})
			if left := processesOf(t, dir); len(left) > 0 {
				t.Fatalf("processes left: %q", left)
			}
		})
	}
}

// giveUp gives the start of a server up once there is a sign of some stage. It returns why it did not start, and nil if it
// did, as it may on a machine that is busy.
func giveUp(t *testing.T, cfg localpg.Config, sign func() bool) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failure := make(chan error, 1)
	go func() {
		server, err := localpg.Start(ctx, cfg)
		if err == nil && server.Stop(context.Background()) != nil {
			err = errors.New("it does not stop")
		}
		failure <- err
	}()
	for {
		select {
		case err := <-failure:
			return err
		default:
		}
		if sign() {
			cancel()
			return <-failure
		}
		time.Sleep(time.Millisecond)
	}
}

func TestStartWithEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, source := range []localpg.Source{"", localpg.Local, localpg.Docker, localpg.Download} {
		_, err := localpg.Start(ctx, localpg.Config{Source: source, Dir: publicDir(t), CacheDir: t.TempDir()})
		equal(t, "canceled, source "+source, errors.Is(err, context.Canceled), true)
	}
}
