package localpg_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	repository := httptest.NewServer(serveBuild(buildArchive(t)))
	defer repository.Close()
	kept := publicDir(t)
	t.Cleanup(func() { removeAllIn(t, kept) })
	cfg := localpg.Config{Source: localpg.Download, DownloadURL: repository.URL, CacheDir: kept}

	server := start(t, cfg)
	equal(t, "source", server.Source(), localpg.Download)
	for _, name := range []string{"BINDIR", "SHAREDIR", "PKGLIBDIR"} { // nothing is taken from where it was built for
		path := dirOf(t, server, name)
		equal(t, name+" "+path, strings.HasPrefix(path, kept), true)
	}
	equal(t, "PL/pgSQL, which is a library", ask[string](t, server.DSN("postgres"),
		"select extname from pg_extension where extname = 'plpgsql'"), "plpgsql")
	exec(t, server.DSN("postgres"), "do $$ begin null; end $$")
	entries, err := filepath.Glob(filepath.Join(kept, "[^i]*")) // beside the template of initdb
	noError(t, err)
	equal(t, "entries", len(entries), 1)

	repository.Close()
	start(t, cfg) // needs no second download
}

func TestDownloadThatFails(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	jar := func(body, sum string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256") {
				body = sum
			}
			_, _ = w.Write([]byte(body))
		})
	}
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, test := range []struct{ name, url, want string }{
		{"nobody there", closed.URL, "unable to connect to http://127.0.0.1"},
		{"not there", serve(http.NotFoundHandler()), "no version found matching"},
		{"no archive", serve(jar("x", "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")), "not a valid zip file"},
		{"other checksum", serve(jar("x", "y")), "checksums do not match"},
		{"no URL", "http://[", "unable to connect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := localpg.Start(t.Context(), localpg.Config{
				Source: localpg.Download, DownloadURL: test.url, CacheDir: publicDir(t),
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), true)
		})
	}
}

func TestDownloadGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	givenUp := make(chan struct{})
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(make([]byte, 1000))
		_ = http.NewResponseController(w).Flush()
		cancel() // with the download under way
		<-givenUp
	}))
	defer repository.Close()
	dir := publicDir(t)
	_, err := localpg.Start(ctx, localpg.Config{Source: localpg.Download, DownloadURL: repository.URL, CacheDir: dir})
	equal(t, "canceled", errors.Is(err, context.Canceled), true)

	// What the download brings after that is removed.
	close(givenUp)
	eventually(t, "nothing is there", func() bool {
		entries, err := os.ReadDir(dir)
		noError(t, err)
		return len(entries) == 0
	})
}

func removeAllIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	noError(t, err)
	for _, entry := range entries {
		noError(t, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
}
