package mapstore_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A router gets its maps from this interface.
var _ interface {
	Load(ctx context.Context) (*shards.Map, error)
	Watch(ctx context.Context, after int) iter.Seq2[*shards.Map, error]
} = (*mapstore.Source)(nil)

func newSource(s mapstore.Store, cache string) *mapstore.Source {
	return mapstore.NewSource(mapstore.SourceConfig{Store: s, Cache: cache, Lookup: environment, Limit: 20 * time.Second})
}

func checkStale(t *testing.T, s *mapstore.Source, stale bool) {
	t.Helper()
	since, why := s.Stale()
	if (why != nil) != stale || since.IsZero() == stale {
		t.Errorf("stale since %s, since %v; want stale: %t", since, why, stale)
	}
}

func TestSourceKilled(t *testing.T) {
	t.Parallel()
	on := newServer(t)
	dsn := newDatabase(t, on)
	cache := filepath.Join(t.TempDir(), "map.yaml")
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	source := newSource(s, cache)
	m, err := source.Load(newContext(t))
	if err != nil || m.Version() != 1 {
		t.Fatalf("version %v, error %v", m, err)
	}
	checkStale(t, source, false)

	if err := on.Kill(newContext(t)); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]*mapstore.Source{"the same": source, "another that starts": newSource(s, cache)} {
		m, err := source.Load(newContext(t))
		if err != nil || m.Version() != 1 || markOf(m) != 1 {
			t.Fatalf("%s: map %v, error %v", name, m, err)
		}
		if got := m.Hosts()[0].ConnString(); got != "postgres://app:open%2Fsesame@10.0.0.1/app" {
			t.Errorf("%s: the variable was not filled in", name)
		}
		checkStale(t, source, true)
	}
	_, err = newSource(s, "").Load(newContext(t))
	if err == nil {
		t.Error("a map from nowhere")
	}

	started := newSource(s, cache)
	if m, err = started.Load(newContext(t)); err != nil {
		t.Fatal(err)
	}
	found := make(chan *shards.Map, 1)
	go func() {
		defer close(found)
		for m, err := range started.Watch(newContext(t), m.Version()) {
			if err == nil {
				found <- m
				return
			}
		}
	}()
	if err := on.Restart(newContext(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the source to see that the store is back with the same map", func() bool {
		_, why := started.Stale()
		return why == nil
	})
	swap(t, s, 1, 2)
	if m := <-found; m == nil || m.Version() != 2 {
		t.Fatalf("map %v", m)
	}
	checkStale(t, started, false)
	if c, err := shards.Load(cache, environment); err != nil || c.Version != 2 {
		t.Errorf("copy of version %d, error %v", c.Version, err)
	}
}

func TestSourceCopy(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "map.yaml")
	s := openPostgres(t, newDatabase(t, server))
	swap(t, s, 0, 1)
	if _, err := newSource(s, cache).Load(newContext(t)); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, cache)
	if bytes.Contains(text, []byte("sesame")) || !bytes.Contains(text, []byte("${PG_A_PASSWORD}")) {
		t.Errorf("the copy does not hold the DSN as written:\n%s", text)
	}
	info, err := os.Stat(cache)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	write(t, cache, text[:100]) // a broken copy does not keep a source from starting
	if m, err := newSource(s, cache).Load(newContext(t)); err != nil || m.Version() != 1 {
		t.Errorf("map %v, error %v", m, err)
	}
	if !bytes.Equal(readFile(t, cache), text) {
		t.Error("the broken copy was not replaced")
	}
}

func TestSourceRefuses(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "map.yaml")
	s := openPostgres(t, newDatabase(t, server))
	for i := range 3 {
		swap(t, s, i, i+1)
	}
	if _, err := newSource(s, cache).Load(newContext(t)); err != nil {
		t.Fatal(err)
	}
	other := openPostgres(t, newDatabase(t, server))
	refused := func(want *mapstore.WentBackError) {
		t.Helper()
		m, err := newSource(other, cache).Load(newContext(t))
		if back := checkAs[*mapstore.WentBackError](t, err); *back != *want || m != nil {
			t.Errorf("map %v, %+v; want %+v", m, back, want)
		}
		if !strings.Contains(err.Error(), cache) {
			t.Errorf("error %q does not name the copy", err)
		}
	}
	refused(&mapstore.WentBackError{Seen: 3})
	swap(t, other, 0, 1)
	refused(&mapstore.WentBackError{Seen: 3, Found: 1})
	for _, err := range newSource(other, cache).Watch(newContext(t), 3) {
		_ = checkAs[*mapstore.WentBackError](t, err)
		break
	}

	next := newChange(1)
	next.Config.Cluster, next.Config.Version = "videos", 6
	third := open(t, shards.Config{Cluster: "videos", Store: shards.Store{Kind: shards.StorePostgres, DSN: newDatabase(t, server)}})
	if _, err := third.Swap(newContext(t), 0, next); err != nil {
		t.Fatal(err)
	}
	_, err := newSource(third, cache).Load(newContext(t))
	if change := checkAs[*shards.ChangeError](t, err); change.Field != "cluster" {
		t.Errorf("error %v", err)
	}
	for m, err := range newSource(third, cache).Watch(newContext(t), 3) {
		if _ = checkAs[*shards.ChangeError](t, err); m != nil {
			t.Errorf("map %v", m)
		}
		break
	}
}

// TestHangs has a server that accepts connections and never answers.
func TestHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := openPostgres(t, "postgres://app@"+silent.Addr().String()+"/control?sslmode=disable", func(o *mapstore.Options) { o.Limit = 300 * time.Millisecond })
	if _, err := s.Load(newContext(t)); err == nil || errors.Is(err, mapstore.ErrNoMap) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Swap(newContext(t), 0, newChange(1)); err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) {
		t.Errorf("error %v", err)
	}
	w := watch(t, s, 0)
	_ = w.fails(t)
	_ = w.fails(t)

	cache := filepath.Join(t.TempDir(), "map.yaml")
	c := newConfig(5)
	c.Version = 4
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	write(t, cache, text)
	source := newSource(s, cache)
	if m, err := source.Load(newContext(t)); err != nil || m.Version() != 4 {
		t.Errorf("map %v, error %v", m, err)
	}
	checkStale(t, source, true)
}
