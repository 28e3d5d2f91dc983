package health_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func report(t *testing.T, c *health.Checker) (r health.Report, body string) {
	t.Helper()
	_, body = get(t, c, "/readyz")
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return r, body
}

// testLimit bounds whatever a test waits for.
const testLimit = 5 * time.Minute

// eventually waits for something that must come true.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(testLimit)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A router starts from its copy of the map, since what is in the store is none. Then the map is mended, which is the one
// that the router has: only its source knows. Maps that do not know leave it at that there was trouble.
func TestStartedFromACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kiloshard.yaml")
	const text = `
cluster: test
shards: 4
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: "postgres://app@127.0.0.1:1/app"}
placement:
  - {shards: 0-3, host: pg-a}
`
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := func() *mapstore.Source {
		store, err := mapstore.Open(t.Context(), shards.Config{Cluster: "test"}, mapstore.Options{Path: path, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return mapstore.NewSource(mapstore.SourceConfig{Store: store, Cache: filepath.Join(dir, "copy.yaml")})
	}
	write(text)
	if _, err := source().Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("cluster: [")
	open := func(maps router.Maps) *health.Checker {
		r, err := router.New(t.Context(), router.Config{Maps: maps})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return health.New(r, health.Config{MaxAge: time.Nanosecond})
	}
	maps := source()
	with, without := open(maps), open(struct{ router.Maps }{source()})

	now, body := report(t, with)
	if since, _ := maps.Stale(); !now.MapStale || !now.MapStaleSince.Equal(since) {
		t.Errorf("stale since %v: %s", since, body)
	}
	eventually(t, "the router hears that there is trouble", func() bool {
		now, _ := report(t, without)
		return now.MapStale && !now.MapStaleSince.IsZero()
	})
	write(text)
	eventually(t, "the map is mended", func() bool {
		now, _ := report(t, with)
		return !now.MapStale && now.MapStaleSince.IsZero()
	})
	if now, body := report(t, without); !now.MapStale {
		t.Errorf("without a source there is no telling, yet: %s", body)
	}
}

// The router refuses a map that its source takes.
func TestRefusedMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "kiloshard.yaml")
	write := func(version, dsn string) {
		t.Helper()
		text := `
cluster: test
version: ` + version + `
shards: 4
epoch: 2026-01-01T00:00:00Z
hosts:
  - {name: pg-a, dsn: "` + dsn + `"}
placement:
  - {shards: 0-3, host: pg-a}
`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1", "postgres://app@127.0.0.1:1/app")
	store, err := mapstore.Open(t.Context(), shards.Config{Cluster: "test"}, mapstore.Options{Path: path, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	maps := mapstore.NewSource(mapstore.SourceConfig{Store: store})
	r, err := router.New(t.Context(), router.Config{Maps: maps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	c := health.New(r, health.Config{MaxAge: time.Nanosecond})
	if now, body := report(t, c); now.MapStale || now.MapVersion != 1 {
		t.Errorf("at first: %s", body)
	}
	write("2", "postgres://app@127.0.0.1:1/app?sslmode=nonsense")
	eventually(t, "the map is refused", func() bool {
		now, _ := report(t, c)
		return now.MapStale && now.MapVersion == 1
	})
	write("3", "postgres://app@127.0.0.1:1/other")
	eventually(t, "the next one is not", func() bool {
		now, _ := report(t, c)
		return !now.MapStale && now.MapVersion == 3
	})
}
