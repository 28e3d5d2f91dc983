package mapstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func TestFile(t *testing.T) {
	t.Parallel()
	testStore(t, func(t *testing.T, _ bool) kit {
		path := filepath.Join(t.TempDir(), "kiloshard.yaml")
		var good []byte
		return kit{
			open: func(t *testing.T, change ...func(*mapstore.Options)) mapstore.Store {
				return openFile(t, path, change...)
			},
			spoil: func(t *testing.T, how func(string) string) {
				good = readFile(t, path)
				write(t, path, []byte(how(string(good))))
			},
			mend: func(t *testing.T) { write(t, path, good) },
		}
	})
}

func openFile(t *testing.T, path string, change ...func(*mapstore.Options)) mapstore.Store {
	t.Helper()
	return open(t, shards.Config{Cluster: cluster}, append(change, func(o *mapstore.Options) { o.Path = path })...)
}

// open opens a store for one test.
func open(t *testing.T, cfg shards.Config, change ...func(*mapstore.Options)) mapstore.Store {
	t.Helper()
	opts := mapstore.Options{Lookup: environment, Poll: 500 * time.Millisecond, Limit: time.Minute}
	for _, c := range change {
		c(&opts)
	}
	s, err := mapstore.Open(newContext(t), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write replaces a file as a whole.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".written", text, 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, path+".written", path)
}
