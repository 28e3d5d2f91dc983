package metrics_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A router starts from its copy of the map, since what is in the store is none. Then the map is mended, then changed.
func TestMapSource(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
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
		next := path + ".next"
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	source := func() *mapstore.Source {
		store, err := mapstore.Open(ctx, shards.Config{Cluster: "test"}, mapstore.Options{Path: path, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return mapstore.NewSource(mapstore.SourceConfig{Store: store, Cache: filepath.Join(dir, "copy.yaml")})
	}
	write(text)
	if _, err := source().Load(ctx); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	write("cluster: [")
	b, ctx := open(t, router.Config{Maps: source()})
	if stale := b.value(t, "map_stale"); stale != 1 {
		t.Errorf("stale: %g, after a start from the copy", stale)
	}
	if at, now := b.value(t, "map_stale_timestamp_seconds"), time.Now().Unix(); at < float64(began.Unix())-1 || at > float64(now)+1 {
		t.Errorf("stale since %s, expected just now", fmt.Sprint(at))
	}
	b.lint(t)

	write(text)
	b.await(ctx, t, "the map is mended", equals(0), "map_stale")
	if got := b.value(t, "map_changes_total"); got != 0 {
		t.Errorf("%g changes before there was one", got)
	}
	before := b.value(t, "map_version")
	write(strings.ReplaceAll(text, "127.0.0.1:1", "127.0.0.1:2"))
	b.await(ctx, t, "the map is changed", equals(1), "map_changes_total")
	if version, at := b.value(t, "map_version"), b.value(t, "map_stale_timestamp_seconds"); version <= before || at != -1 {
		t.Errorf("version %g after %g, stale since %g", version, before, at)
	}
}
