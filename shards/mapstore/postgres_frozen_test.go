//go:build linux

package mapstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// TestPostgresFrozen stops all processes of a server, and continues them later.
func TestPostgresFrozen(t *testing.T) {
	t.Parallel()
	on := newServer(t)
	if on.PID() == 0 {
		t.Skip("the server is no child of this process")
	}
	hasty := func(o *mapstore.Options) { o.Limit, o.Poll = 500*time.Millisecond, 100*time.Millisecond }
	dsn := newDatabase(t, on)
	s, patient := openPostgres(t, dsn, hasty), openPostgres(t, dsn)
	swap(t, patient, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	version := 1
	for range 2 {
		eventually(t, "an answer", func() bool { // so that there is a connection
			_, err := s.Load(newContext(t))
			return err == nil
		})
		noError(t, on.Freeze(newContext(t)))
		_ = w.fails(t)
		_, swapErr := s.Swap(newContext(t), version, newChange(version+1))
		_, loadErr := s.Load(newContext(t))
		noError(t, on.Thaw(newContext(t)))
		if swapErr == nil || loadErr == nil || errors.Is(loadErr, mapstore.ErrNoMap) {
			t.Fatalf("errors of a server that stands still: %v, %v", swapErr, loadErr)
		}
		for {
			e, err := patient.Swap(newContext(t), version, newChange(version+1))
			var conflict *mapstore.ConflictError
			if errors.As(err, &conflict) {
				if !errors.Is(swapErr, mapstore.ErrOutcomeUnknown) {
					t.Errorf("a change was made after it was refused: %v", swapErr)
				}
				version = conflict.Found
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			version = e.Map.Version()
			break
		}
		for found := 0; found < version; {
			found = w.entry(t).Map.Version()
		}
	}
	if all := versions(t, patient); len(all) != version {
		t.Errorf("%d versions, want %d", len(all), version)
	}
}
