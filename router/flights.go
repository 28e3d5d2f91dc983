package router

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/shards"
)

// flightLimit bounds what is done for several callers at once, and what must not end halfway because one of them leaves.
const flightLimit = time.Minute

// flights does things once for all who ask for them at the same time.
type flights struct {
	group singleflight.Group
	ctx   context.Context // ends with close
	end   context.CancelFunc

	mu     sync.Mutex
	closed bool           // guarded by mu
	active sync.WaitGroup // added to under mu while closed is false
}

func newFlights() *flights {
	f := &flights{}
	f.ctx, f.end = context.WithCancel(context.Background())
	return f
}

// spot is where a key was found, if it was.
type spot struct {
	shard shards.Number
	found bool
}

// share runs fn for all who ask under a name while it runs, and returns its answer, or the error of ctx when that ends
// first. What fn does goes on then, for the others.
func (f *flights) share(ctx context.Context, name string, fn func(context.Context) (spot, error)) (spot, error) {
	if err := ctx.Err(); err != nil {
		return spot{}, err
	}
	results := f.group.DoChan(name, func() (got any, err error) {
		got = spot{}
		err = f.whole(ctx, func(ctx context.Context) error {
			var a spot
			a, err := fn(ctx)
			got = a
			return err
		})
		return got, err
	})
	select {
	case <-ctx.Done():
		return spot{}, ctx.Err()
	case result := <-results:
		return result.Val.(spot), result.Err
	}
}

// whole runs fn with the values of ctx, but not its end: only the limit and close end it.
func (f *flights) whole(ctx context.Context, fn func(context.Context) error) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	f.active.Add(1)
	f.mu.Unlock()
	defer f.active.Done()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightLimit)
	defer cancel()
	stop := context.AfterFunc(f.ctx, cancel)
	defer stop()
	return fn(ctx)
}

// close ends what is under way, and waits for it.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.end()
	f.active.Wait()
}
