package prove_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kiloshard/kiloshard/router"
)

// errNotCounted is of a call that may fail as it did.
var errNotCounted = errors.New("this call does not count")

// callers has a number of callers make a call over and over, each time with an ID that no other call has. A call that fails is
// the test's failure, and its caller's end. some waits until some more were made, end ends them all.
func callers(t *testing.T, count int, call func(id int64) error) (some func(what string), end func()) {
	t.Helper()
	stop, calls, wait := make(chan struct{}), new(atomic.Int64), new(sync.WaitGroup)
	for i := range count {
		wait.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				switch err := call(int64(i+1)<<32 | n); {
				case errors.Is(err, errNotCounted):
				case err != nil:
					t.Errorf("call %d: %v", n, err)
					return
				default:
					calls.Add(1)
				}
			}
		})
	}
	some = func(what string) {
		t.Helper()
		begun := calls.Load()
		eventually(t, what, func() bool { return t.Failed() || calls.Load() > begun+50 })
	}
	return some, func() {
		close(stop)
		wait.Wait()
	}
}

// readBack reads, from wherever it may, what was written just now.
func readBack(ctx context.Context, s router.Shard, id int64) error {
	at, err := s.Position(ctx)
	if err != nil {
		return err
	}
	var note string
	return s.ReadOnly(router.Reads{After: at}).QueryRow(ctx, selection, id).Scan(&note)
}
