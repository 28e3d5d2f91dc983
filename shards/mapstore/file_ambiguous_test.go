package mapstore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// countingStore counts loads.
type countingStore struct {
	mapstore.Store
	loads atomic.Int64
}

func (s *countingStore) Load(ctx context.Context) (mapstore.Entry, error) {
	e, err := s.Store.Load(ctx)
	s.loads.Add(1)
	return e, err
}

// unwritable makes a file whose history not even root can write, as in a directory that is mounted for reading.
func unwritable(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kiloshard.yaml")
	write(t, path, []byte(text))
	if err := os.MkdirAll(path+".history/lock", 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// An edit whose version would be that of the last map is refused on every path: a service keeps its map, reports that
// it is stale, and continues once the file has a new version.
func TestSourceOfAnAmbiguousEdit(t *testing.T) {
	t.Parallel()
	path := unwritable(t, commented)
	cache := filepath.Join(t.TempDir(), "copy.yaml")
	counted := &countingStore{Store: openFile(t, path)}
	source := newSource(counted, cache)
	m, err := source.Load(newContext(t))
	if err != nil {
		t.Fatal(err)
	}
	checkFound(t, watch(t, counted, -1).entry(t)) // the file has been looked at
	found, failed := make(chan *shards.Map, 10), make(chan error, 10)
	go func() {
		defer close(found)
		for m, err := range source.Watch(newContext(t), m.Version()) {
			if err != nil {
				failed <- err
				continue
			}
			found <- m
			return
		}
	}()
	write(t, path, []byte(weighing("2")))
	if err := <-failed; !strings.Contains(err.Error(), "write version: 1") {
		t.Errorf("error %q", err)
	}
	for loads := counted.loads.Load(); counted.loads.Load() < loads+3; { // the source loads the map each second until the store works
		checkStale(t, source, true)
		time.Sleep(10 * time.Millisecond)
	}
	if c, err := shards.Load(cache, environment); err != nil || c.Version != 0 || c.Hosts[0].Weight != 1 {
		t.Errorf("the copy is version %d with mark %d, error %v", c.Version, c.Hosts[0].Weight, err)
	}
	if m, err := newSource(openFile(t, path), cache).Load(newContext(t)); err != nil || markOf(m) != 2 {
		t.Errorf("restarted: %v, error %v", m, err)
	}
	write(t, path, []byte(strings.Replace(weighing("3"), "shards:", "version: 1\nshards:", 1)))
	if m := <-found; m == nil || m.Version() != 1 || markOf(m) != 3 {
		t.Errorf("map %v", m)
	}
	checkStale(t, source, false)
}
