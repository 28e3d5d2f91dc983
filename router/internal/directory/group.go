package directory

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// sharedLimit is the time limit of work that several callers share, or that must not stop halfway when a caller leaves.
const sharedLimit = time.Minute

// group runs work once for all callers that need it at the same time.
type group struct {
	calls singleflight.Group
	ctx   context.Context // ends with close
	end   context.CancelFunc

	mu     sync.Mutex
	closed error          // guarded by mu
	active sync.WaitGroup // added to under mu while closed is nil
}

func newGroup() *group {
	g := &group{}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// share runs fn once for all callers that pass the same name while it runs, and returns its result. If ctx ends first, share
// returns the error of ctx, and fn continues for the others.
func (g *group) share(ctx context.Context, name string, fn func(context.Context) (entry, error)) (entry, error) {
	if err := ctx.Err(); err != nil {
		return entry{}, err
	}
	results := g.calls.DoChan(name, func() (got any, err error) {
		got = entry{}
		err = g.run(ctx, func(ctx context.Context) error {
			e, err := fn(ctx)
			got = e
			return err
		})
		return got, err
	})
	select {
	case <-ctx.Done():
		return entry{}, ctx.Err()
	case result := <-results:
		return result.Val.(entry), result.Err
	}
}

// run runs fn with the values of ctx but without its cancellation: only sharedLimit and close cancel fn.
func (g *group) run(ctx context.Context, fn func(context.Context) error) error {
	g.mu.Lock()
	if g.closed != nil {
		g.mu.Unlock()
		return g.closed
	}
	g.active.Add(1)
	g.mu.Unlock()
	defer g.active.Done()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLimit)
	defer cancel()
	stop := context.AfterFunc(g.ctx, cancel)
	defer stop()
	return fn(ctx)
}

// close cancels running work and waits for it. Later calls return why.
func (g *group) close(why error) {
	g.mu.Lock()
	g.closed = why
	g.mu.Unlock()
	g.end()
	g.active.Wait()
}
