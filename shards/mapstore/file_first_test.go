package mapstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A watch of a file that never held a map yields an error.
func TestFileThatWasNeverAMap(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	if err := os.WriteFile(path, []byte("cluster: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := mapstore.Open(newContext(t), shards.Config{}, mapstore.Options{Path: path, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for e, err := range store.Watch(newContext(t), 0) {
		if err == nil {
			t.Errorf("got %+v, %v", e, err)
		}
		return
	}
	t.Error("the watch yielded nothing")
}
